"""Text to tokens, by a tokenizer of Hugging Face from a folder, and which of them a loss is
taken on: those of a completion, or of what the assistant says in a chat."""
import os
import re

from acc_export import Refused


def _first_line(error):
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__


class Tokens:
    def __init__(self, folder):
        try:
            import transformers
        except ImportError as error:
            raise Refused("text needs Hugging Face's library: pip install transformers"
                          ) from error
        transformers.logging.set_verbosity_error()
        self.folder = folder
        try:
            if os.path.isfile(folder):
                # A file tokenizer.json alone.
                self.tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_file=folder)
            else:
                self.tokenizer = transformers.AutoTokenizer.from_pretrained(
                    folder, local_files_only=True)
            if not self.tokenizer("a")["input_ids"] and not self.tokenizer("the")["input_ids"]:
                raise ValueError("it knows no words")
        except Exception as error:
            raise Refused(f"expected a folder or tokenizer.json with a tokenizer, found none that "
                          f"can be loaded in '{folder}': {_first_line(error)}") from error
        # The model's own limit is not that of a row, which --sequence says.
        self.tokenizer.model_max_length = 1 << 60
        self.eos = self.tokenizer.eos_token_id
        self.straddled = 0  # prompts whose last token goes on into the completion
        self.specials = set(self.tokenizer.all_special_ids)

    def token(self, what):
        """The ID of the token for `what` (pad, mask); refused where there is none."""
        found = getattr(self.tokenizer, f"{what}_token_id")
        if found is None:
            raise Refused(f"the tokenizer '{self.folder}' has no {what} token: give it one (in "
                          "tokenizer_config.json)")
        return found

    def _need_offsets(self):
        if not self.tokenizer.is_fast:
            raise Refused(f"the tokenizer '{self.folder}' does not say which letters its tokens "
                          "are of, by which prompts are told: save a fast one "
                          "(tokenizer.json), or say --loss-on all")

    def encode(self, texts, pairs=None, target=False, most=None):
        """Rows {"input_ids", ...} of several texts, with the special tokens that the model
        has. `most`: tokens of a row, more are cut."""
        cut = {"truncation": True, "max_length": most} if most else {}
        given = {"text_target": texts} if target else {"text": texts, "text_pair": pairs}
        made = self.tokenizer(**given, **cut)
        return [{name: made[name][i] for name in made if name != "attention_mask"}
                for i in range(len(texts))]

    def with_eos(self, ids):
        return ids if self.eos is None or ids and ids[-1] == self.eos else [*ids, self.eos]

    def completed(self, prompts, completions):
        """(tokens, whether each counts) of a prompt and what follows it. A token that begins
        in the prompt is of the prompt."""
        self._need_offsets()
        made = self.tokenizer([a + b for a, b in zip(prompts, completions)],
                              return_offsets_mapping=True, return_special_tokens_mask=True)
        for prompt, ids, offsets, special in zip(prompts, made["input_ids"],
                                                 made["offset_mapping"],
                                                 made["special_tokens_mask"]):
            counts = [False] * len(ids)
            for i, (begin, end) in enumerate(offsets):
                if special[i] and begin == end:
                    counts[i] = i > 0 and counts[i - 1]  # added at the end, or at the start
                else:
                    counts[i] = begin >= len(prompt)
            self.straddled += any(begin < len(prompt) < end for begin, end in offsets)
            ended = self.with_eos(ids)
            yield ended, counts + [True] * (len(ended) - len(ids))

    # -- chats ---------------------------------------------------------------------------

    def _render(self, messages, place, **words):
        try:
            return self.tokenizer.apply_chat_template(messages, **words)
        except Exception as error:
            raise Refused(f"{place}: the tokenizer's chat template does not take these messages: "
                          f"{_first_line(error)}") from error

    def chat(self, messages, loss_on, place, tools=None):
        """(tokens, whether each counts) of a chat. `loss_on`: assistant, completion (what it
        says last) or all."""
        if not self.tokenizer.chat_template:
            raise Refused(f"the tokenizer '{self.folder}' has no chat template: save one with it "
                          "(chat_template.jinja), or give text, or prompt and completion")
        if not isinstance(messages, list) or not all(
                isinstance(m, dict) and isinstance(m.get("role"), str) for m in messages):
            raise Refused(f"{place}: expected a list of messages with 'role' and 'content', found "
                          f"{str(messages)[:60]}")
        words = {"tools": tools} if tools else {}
        says = [i for i, message in enumerate(messages) if message["role"] == "assistant"]
        if loss_on == "completion" and says[-1:] != [len(messages) - 1]:
            raise Refused(f"{place}: expected the assistant's message last for --loss-on "
                          "completion, found "
                          f"{messages[-1]['role'] if messages else 'no message'}")
        text = self._render(messages, place, tokenize=False, **words)
        if loss_on == "all":
            ids = self.tokenizer(text, add_special_tokens=False)["input_ids"]
            return ids, [True] * len(ids)
        self._need_offsets()
        if loss_on == "assistant" and re.search(r"\{%-?\s*generation", self._template(tools)):
            spans = self._marked(messages, place, tools)
        else:
            spans = [self._span(messages, i, text, place, words)
                     for i in (says if loss_on == "assistant" else says[-1:])]
        made = self.tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)
        return made["input_ids"], [any(begin <= at < end for begin, end in spans)
                                   for at, _ in made["offset_mapping"]]

    def _template(self, tools):
        return self.tokenizer.get_chat_template(tools=tools)

    def _marked(self, messages, place, tools):
        """The letters that the template marks with {% generation %}. apply_chat_template has a
        mask of tokens for them, in which a mark that ends in a blank goes on to the end of the
        chat, since no token is of the blank."""
        from transformers.utils.chat_template_utils import render_jinja_template
        try:
            _, [spans] = render_jinja_template(
                [messages], tools, chat_template=self._template(tools),
                return_assistant_tokens_mask=True, **self.tokenizer.special_tokens_map)
        except Exception as error:
            raise Refused(f"{place}: the tokenizer's chat template does not take these messages: "
                          f"{_first_line(error)}") from error
        return spans

    def _span(self, messages, index, text, place, words):
        """The letters of `text` that message `index` adds behind the prompt for it."""
        before = self._render(messages[:index], place, tokenize=False,
                              add_generation_prompt=True, **words)
        after = self._render(messages[:index + 1], place, tokenize=False, **words)
        if not (after.startswith(before) and text.startswith(after)):
            raise Refused(f"{place}: message {index + 1} changes how the template writes those "
                          "before it, so that what the assistant says cannot be told: mark it in "
                          "the template with {% generation %}, or say --loss-on completion or all")
        return len(before), len(after)
