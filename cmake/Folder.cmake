# One static library a folder of src/espalier, so that the order of the folders is the order of linking.

add_library(espalier_warnings INTERFACE)
# g++ 12 warns of overlapping copies inside std::string's own operator+ (GCC bug 105651).
target_compile_options(espalier_warnings INTERFACE -Wall -Wextra $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>)

# For what is not the library: that is what sanitizers and fuzzers look at, and the rest compiles in a third of the time so.
add_library(espalier_light INTERFACE)
target_compile_options(espalier_light INTERFACE $<$<NOT:$<CONFIG:Release>>:-O0 -fno-sanitize=undefined>
                                                $<$<BOOL:${ESPALIER_FUZZERS}>:-fno-sanitize=fuzzer-no-link>)

# Sources that are compiled together read their headers once; their file-local names must not meet.
function(espalier_unity target)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${ESPALIER_UNITY} UNITY_BUILD_BATCH_SIZE 8)
endfunction()

function(espalier_folder name)
  cmake_parse_arguments(ARG "" "" "USES" ${ARGN})
  set(folder ${PROJECT_SOURCE_DIR}/src/espalier/${name})
  file(GLOB sources CONFIGURE_DEPENDS ${folder}/*.cpp ${folder}/*/*.cpp)
  if(sources)
    add_library(espalier_${name} STATIC ${sources})
    espalier_unity(espalier_${name})
    set(scope PUBLIC)
    target_link_libraries(espalier_${name} PRIVATE $<BUILD_INTERFACE:espalier_warnings>)
  else()
    add_library(espalier_${name} INTERFACE)
    set(scope INTERFACE)
  endif()
  target_include_directories(espalier_${name} ${scope} $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/src>
                                                       $<INSTALL_INTERFACE:include>)
  target_link_libraries(espalier_${name} ${scope} ${ARG_USES})
  set_property(GLOBAL APPEND PROPERTY ESPALIER_LIBRARIES espalier_${name})
endfunction()

# A source of a folder that cannot be built everywhere: where it is not `present`, NAME_absent.cpp, its stub, takes its place.
function(espalier_alternative folder name present)
  set(left_out ${name}.cpp)
  if(present)
    set(left_out ${name}_absent.cpp)
  endif()
  set_source_files_properties(${PROJECT_SOURCE_DIR}/src/espalier/${folder}/${left_out} PROPERTIES HEADER_FILE_ONLY ON)
endfunction()

# One that needs a library which may be missing.
function(espalier_backend folder name library)  # and the libraries that it needs
  set(present FALSE)
  if(TARGET ${library})
    set(present TRUE)
    target_link_libraries(espalier_${folder} PUBLIC ${library} ${ARGN})
  endif()
  espalier_alternative(${folder} ${name} ${present})
endfunction()

function(espalier_op_registry)
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/espalier/ops/*.cpp)
  set(declarations "")
  set(entries "")
  foreach(source ${sources})
    file(STRINGS ${source} definition REGEX "^extern const OpDef def{" LIMIT_COUNT 1)
    if(definition)
      get_filename_component(name ${source} NAME_WE)
      string(APPEND declarations "namespace ${name} { extern const OpDef def; }\n")
      string(APPEND entries "    &ops::${name}::def,\n")
      set_property(GLOBAL APPEND PROPERTY ESPALIER_OPS ${name})
    endif()
  endforeach()
  set(text "// Written by cmake from the files of ops/.\n#include \"espalier/ir/op_def.h\"\n\nnamespace espalier {\nnamespace ops {\n${declarations}}  // namespace ops\n\n")
  string(APPEND text "const std::vector<const OpDef*>& all_ops() {\n  static const std::vector<const OpDef*> table = {\n${entries}  };\n  return table;\n}\n\n}  // namespace espalier\n")
  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/generated/op_registry.cpp CONTENT "${text}" @ONLY)
  get_target_property(kind espalier_ops TYPE)
  if(kind STREQUAL "STATIC_LIBRARY")
    target_sources(espalier_ops PRIVATE ${PROJECT_BINARY_DIR}/generated/op_registry.cpp)
  endif()
endfunction()
