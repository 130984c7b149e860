# weft_embed(library NAMESPACE name FILES file...): a library that holds text files as constants, so that
# they stay what they are in the sources. Each is declared in a header of the sources as
# `namespace <name> { extern const std::string_view <file with _ for .>; }`. A library of its own, as
# what makes its sources waits for all that it links.
function(weft_embed library)
  cmake_parse_arguments(E "" "NAMESPACE" "FILES" ${ARGN})
  set(sources)
  foreach(file IN LISTS E_FILES)
    get_filename_component(name ${file} NAME)
    string(REPLACE "." "_" name ${name})
    set(source ${CMAKE_CURRENT_BINARY_DIR}/embedded/${name}.cpp)
    add_custom_command(OUTPUT ${source}
      COMMAND ${CMAKE_COMMAND} -DINPUT=${CMAKE_CURRENT_SOURCE_DIR}/${file} -DOUTPUT=${source} -DNAME=${name}
        -DNAMESPACE=${E_NAMESPACE} -P ${PROJECT_SOURCE_DIR}/core/cmake/embed_file.cmake
      DEPENDS ${file} ${PROJECT_SOURCE_DIR}/core/cmake/embed_file.cmake
      VERBATIM)
    list(APPEND sources ${source})
  endforeach()
  add_library(${library} STATIC ${sources})
  weft_target(${library})
endfunction()
