#include "layer_kinds.hpp"

#include "choices.hpp"

namespace bmpaudit {

// The table of layers. A name is that of a file, which defines the function <name>_kind.
#define FOR_EACH_LAYER_KIND(ENTRY) \
    ENTRY(gat)                     \
    ENTRY(gcn)                     \
    ENTRY(mlp)

#define DECLARE(name) const LayerKind &name##_kind();
FOR_EACH_LAYER_KIND(DECLARE)

const LayerKind &layer_kind(const std::string &name) {
#define CHOICE(name) {#name, &name##_kind()},
    static const Choices<const LayerKind *> kinds = {FOR_EACH_LAYER_KIND(CHOICE)};
    return *chosen("architecture", name, kinds);
}

}  // namespace bmpaudit
