// Drawing, and the extremes.

#include "Order.h"

#include <algorithm>
#include <cstdlib>

namespace accel::rt::model {

Status Order::parse(const std::string &text, Order &order) {
  order = Order();
  size_t colon = text.find(':');
  std::string name = text.substr(0, colon);
  if (text == "last") {
    order.kind = Kind::Last;
    return Status();
  }
  if (colon != std::string::npos && (name == "seed" || name == "starve")) {
    const char *digits = text.c_str() + colon + 1;
    char *end = nullptr;
    uint64_t number = std::strtoull(digits, &end, 10);
    if (end != digits && *end == '\0') {
      if (name == "starve") {
        order.kind = Kind::Starve;
        order.starved = number;
      }
      order.random.seed(number);
      return Status();
    }
  }
  return Status::error("expected an order 'seed:N', 'last' or 'starve:STREAM', "
                       "found " +
                       inQuotes(text));
}

size_t Order::pick(const std::vector<Ready> &ready) {
  if (kind == Kind::Last)
    return static_cast<size_t>(
        std::max_element(ready.begin(), ready.end(),
                         [](const Ready &a, const Ready &b) {
                           return a.number < b.number;
                         }) -
        ready.begin());
  std::vector<size_t> able;
  for (size_t i = 0; i < ready.size(); ++i)
    if (kind != Kind::Starve || ready[i].stream != starved)
      able.push_back(i);
  return able.empty() ? random() % ready.size() : able[random() % able.size()];
}

} // namespace accel::rt::model
