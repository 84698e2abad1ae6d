#include "layer_kinds.hpp"

#include "choices.hpp"

namespace bmpaudit {

// The table of layers. A name is that of a file, which defines the function make_<name>_kind.
#define FOR_EACH_LAYER_KIND(ENTRY) \
    ENTRY(appnp)                   \
    ENTRY(gat)                     \
    ENTRY(gcn)                     \
    ENTRY(gin)                     \
    ENTRY(mlp)                     \
    ENTRY(sage)                    \
    ENTRY(sgc)

#define DECLARE(name) std::shared_ptr<const LayerKind> make_##name##_kind(const KindSettings &settings);
FOR_EACH_LAYER_KIND(DECLARE)

std::shared_ptr<const LayerKind> make_layer_kind(const std::string &name, const KindSettings &settings) {
#define CHOICE(name) {#name, make_##name##_kind},
    using Maker = std::shared_ptr<const LayerKind> (*)(const KindSettings &);
    static const Choices<Maker> makers = {FOR_EACH_LAYER_KIND(CHOICE)};
    return chosen("kind", name, makers)(settings);
}

}  // namespace bmpaudit
