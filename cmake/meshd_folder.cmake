# meshd_folder(NAME [LINKS ...] [PRIVATE_LINKS ...]): one static library from all .cpp files of the current folder.
# The LINKS line of a folder is the dependency diagram: tests/source/include_direction_test.py holds #include lines to it.
add_library(meshd_options INTERFACE)
target_compile_options(meshd_options INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual -Wcast-align -Wimplicit-fallthrough -Werror
  # Elementwise results must not depend on how a loop is cut, so no contraction outside kernels that ask for fma.
  -ffp-contract=off)
# g++ looks for garbage of its own less often: 5 % less time for a twentieth more memory, and the same code.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  target_compile_options(meshd_options INTERFACE --param=ggc-min-heapsize=400000)
endif()
target_include_directories(meshd_options INTERFACE ${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR}/generated)
target_link_libraries(meshd_options INTERFACE Threads::Threads)

option(MESHD_ASAN "address and undefined-behaviour sanitizers" OFF)
option(MESHD_TSAN "thread sanitizer" OFF)
option(MESHD_FUZZ "code that reads what clients send tells tests/fuzz where an input has been" OFF)
if(MESHD_ASAN)
  # The vptr check opens a pipe to look at memory, which fails in the test that has no descriptors left.
  target_compile_options(meshd_options INTERFACE -fsanitize=address,undefined -fno-sanitize=vptr -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(meshd_options INTERFACE -fsanitize=address,undefined)
endif()
if(MESHD_TSAN)
  # The sanitizer does not see fences; Asio orders its queue by mutexes as well, so they can go.
  target_compile_options(meshd_options INTERFACE -fsanitize=thread -fno-omit-frame-pointer -DBOOST_ASIO_DISABLE_FENCED_BLOCK)
  target_link_options(meshd_options INTERFACE -fsanitize=thread)
endif()

option(MESHD_UNITY_BUILD "compile the files of a library folder in batches: half the processor time of a first build" ON)

# meshd_unity(TARGET): its sources are compiled in batches, so that headers and the templates they instantiate are
# compiled once a batch. Files of a folder share one namespace then, and two of them cannot have a local name in common.
# Everything in a batch is compiled again when one file of it changes: work on a single file with the preset debug.
function(meshd_unity target)
  if(MESHD_UNITY_BUILD)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE BATCH UNITY_BUILD_BATCH_SIZE 40)
  endif()
endfunction()

# meshd_sources_below(FOLDER OUT): its .cpp files and those of its subfolders, but for subfolders with a CMakeLists.txt of their own.
function(meshd_sources_below folder out)
  file(GLOB sources CONFIGURE_DEPENDS ${folder}/*.cpp)
  file(GLOB subfolders CONFIGURE_DEPENDS LIST_DIRECTORIES true ${folder}/*)
  foreach(subfolder ${subfolders})
    if(IS_DIRECTORY ${subfolder} AND NOT EXISTS ${subfolder}/CMakeLists.txt)
      meshd_sources_below(${subfolder} more)
      list(APPEND sources ${more})
    endif()
  endforeach()
  set(${out} ${sources} PARENT_SCOPE)
endfunction()

# Subfolders without a CMakeLists.txt of their own, and theirs, belong to the library.
# PLANTED: these files are compiled each by itself, because the test binary meshd_planted (tests/history) replaces them by a second compile with
# planted bugs (service/core/planted_bugs.h).
define_property(GLOBAL PROPERTY MESHD_PLANTED_SOURCES BRIEF_DOCS "files with a site of a planted bug")
function(meshd_folder name)
  cmake_parse_arguments(FOLDER "" "" "PLANTED;LINKS;PRIVATE_LINKS" ${ARGN})
  meshd_sources_below(${CMAKE_CURRENT_SOURCE_DIR} sources)
  list(TRANSFORM FOLDER_LINKS PREPEND meshd_ REGEX "^[a-z]+$")
  if(sources)
    add_library(meshd_${name} STATIC ${sources})
    target_link_libraries(meshd_${name} PUBLIC meshd_options ${FOLDER_LINKS} PRIVATE ${FOLDER_PRIVATE_LINKS})
    meshd_unity(meshd_${name})
    foreach(source ${FOLDER_PLANTED})
      set_source_files_properties(${CMAKE_CURRENT_SOURCE_DIR}/${source} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
      set_property(GLOBAL APPEND PROPERTY MESHD_PLANTED_SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/${source})
    endforeach()
  else()
    add_library(meshd_${name} INTERFACE)
    target_link_libraries(meshd_${name} INTERFACE meshd_options ${FOLDER_LINKS} ${FOLDER_PRIVATE_LINKS})
  endif()
endfunction()
