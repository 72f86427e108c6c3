# floe_embed(LIBRARY FOLDER FUNCTION FILE...): puts files of FOLDER into a library. FUNCTION(name), which FOLDER/assets.h
# declares, has their bytes. Run by cmake -P, this writes the source.
if(CMAKE_SCRIPT_MODE_FILE)
  set(text "// Made of the files of ${FOLDER}.\n#include \"${FOLDER}/assets.h\"\n\nnamespace floe::server {\n\n")
  string(APPEND text "std::string_view ${FUNCTION}(std::string_view name) {\n")
  foreach(name IN LISTS FILES)
    file(READ ${SOURCE_DIR}/${FOLDER}/${name} bytes)
    string(APPEND text "  if (name == \"${name}\")\n    return R\"floe(${bytes})floe\";\n")
  endforeach()
  string(APPEND text "  return {};\n}\n\n}  // namespace floe::server\n")
  file(WRITE ${OUTPUT} "${text}")
  return()
endif()

function(floe_embed library folder function)
  set(output ${CMAKE_BINARY_DIR}/embedded/${folder}.cc)
  list(TRANSFORM ARGN PREPEND ${CMAKE_SOURCE_DIR}/${folder}/ OUTPUT_VARIABLE files)
  add_custom_command(
    OUTPUT ${output} DEPENDS ${files} ${CMAKE_SOURCE_DIR}/cmake/embed.cmake VERBATIM
    COMMAND ${CMAKE_COMMAND} -DSOURCE_DIR=${CMAKE_SOURCE_DIR} -DFOLDER=${folder} -DFUNCTION=${function} "-DFILES=${ARGN}"
            -DOUTPUT=${output} -P ${CMAKE_SOURCE_DIR}/cmake/embed.cmake)
  target_sources(${library} PRIVATE ${output})
endfunction()
