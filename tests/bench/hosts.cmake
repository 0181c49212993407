# What MPI itself takes, for hosts_bench.py.
if(MESHD_MPI AND MPI_CXX_FOUND)
  add_executable(mpi_allreduce EXCLUDE_FROM_ALL ${CMAKE_CURRENT_LIST_DIR}/mpi_allreduce.cpp)
  target_link_libraries(mpi_allreduce PRIVATE meshd_options MPI::MPI_CXX)
  target_compile_definitions(mpi_allreduce PRIVATE OMPI_SKIP_MPICXX MPICH_SKIP_MPICXX)
endif()
