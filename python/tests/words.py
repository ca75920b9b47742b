"""Sentences and the tokenizer that knows their words: what the tests of data train on. The
sentences are drawn from a small grammar, so that nothing need be at hand; a class, a
translation and an answer follow from what a sentence says."""
import random

SPECIALS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "</s>"]
SUBJECTS = ["the cat", "a dog", "my friend", "the old captain", "every child", "nobody"]
VERBS = ["sees", "likes", "paints", "finds", "hates", "loses"]
OBJECTS = ["the harbour", "a red kite", "the long winter", "some bread", "a quiet street"]
ENDS = ["", "in the morning", "without a word", "again and again", "when it rains"]
SIGNS = ["user", "assistant", "system", "<|", "|>", "who", "what", "?", "say", "in", "short"]
WORDS = sorted({word for part in (SUBJECTS, VERBS, OBJECTS, ENDS) for text in part
                for word in text.split()} | set(SIGNS))
CHAT = ("{% for m in messages %}{{ '<| ' + m['role'] + ' |> ' }}{% if m['role'] == 'assistant' %}"
        "{% generation %}{{ m['content'] + ' </s> ' }}{% endgeneration %}{% else %}"
        "{{ m['content'] + ' </s> ' }}{% endif %}{% endfor %}"
        "{% if add_generation_prompt %}{{ '<| assistant |> ' }}{% endif %}")


def sentences(count, seed):
    """(sentence, its parts) drawn one after another."""
    draw = random.Random(seed)
    for _ in range(count):
        parts = [draw.choice(kind) for kind in (SUBJECTS, VERBS, OBJECTS, ENDS)]
        yield " ".join(filter(None, parts)), parts


def save_tokenizer(folder, chat=CHAT, wraps=True):
    """A tokenizer of words in `folder`; `wraps`: it puts [CLS] and [SEP] around a text."""
    import tokenizers
    import transformers
    made = tokenizers.Tokenizer(tokenizers.models.WordLevel(
        {word: i for i, word in enumerate(SPECIALS + WORDS)}, "[UNK]"))
    made.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    if wraps:
        made.post_processor = tokenizers.processors.TemplateProcessing(
            single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1",
            special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=made, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]",
        sep_token="[SEP]", mask_token="[MASK]", eos_token="</s>")
    tokenizer.chat_template = chat
    tokenizer.save_pretrained(folder)
    return tokenizer
