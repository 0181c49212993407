meshd_test(program_test
  SOURCES program_lexer_test.cpp program_types_test.cpp program_constants_test.cpp program_attributes_test.cpp
          program_shardings_test.cpp program_ops_test.cpp program_module_test.cpp program_refused_test.cpp
          program_inline_test.cpp program_gspmd_test.cpp program_specialise_test.cpp
          program_tuples_test.cpp
  LINKS meshd_program)
meshd_test(program_corpus_test
  SOURCES program_conformance_test.cpp program_mutation_test.cpp
  LINKS meshd_program)
