// Things that are chosen by name.
#pragma once

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace bmpaudit {

template <typename T> using Choices = std::vector<std::pair<std::string, T>>;

// The choice of this name; std::invalid_argument, with the names there are, if there is none.
template <typename T> T chosen(const std::string &what, const std::string &name, const Choices<T> &choices) {
    std::string names;
    for (const auto &[known, value] : choices) {
        if (known == name) return value;
        names += (names.empty() ? "" : ", ") + known;
    }
    throw std::invalid_argument(what + " must be one of " + names + ", got '" + name + "'");
}

}  // namespace bmpaudit
