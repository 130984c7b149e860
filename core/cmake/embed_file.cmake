# Run by weft_embed: the text of INPUT as the constant NAME of NAMESPACE in the source OUTPUT.
file(READ ${INPUT} text)
file(WRITE ${OUTPUT} "#include <string_view>

namespace ${NAMESPACE} {
extern const std::string_view ${NAME};
const std::string_view ${NAME} = R\"embedded(${text})embedded\";
}  // namespace ${NAMESPACE}
")
