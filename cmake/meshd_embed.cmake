# meshd_embed(TARGET NAME FILE): FILE's bytes become meshd::api::embedded::NAME() of TARGET, made anew when FILE changes.
function(meshd_embed target name file)
  set(out ${CMAKE_BINARY_DIR}/generated/embedded/${name}.cpp)
  add_custom_command(
    OUTPUT ${out}
    COMMAND ${CMAKE_COMMAND} -DNAME=${name} -DINPUT=${file} -DOUTPUT=${out} -P ${CMAKE_SOURCE_DIR}/cmake/embed_file.cmake
    DEPENDS ${file} ${CMAKE_SOURCE_DIR}/cmake/embed_file.cmake
    VERBATIM)
  target_sources(${target} PRIVATE ${out})
endfunction()
