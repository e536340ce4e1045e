# MQ_CUDA
# -------
# --with-cuda=[auto|yes|no|DIR]. Finds nvcc and the static runtime beside it; an error only when CUDA
# was asked for. Sets the conditional CUDA, and NVCC, NVCCFLAGS, CUDA_CPPFLAGS, CUDA_LIBS.
AC_DEFUN([MQ_CUDA], [
AC_ARG_WITH([cuda],
  [AS_HELP_STRING([--with-cuda=@<:@auto|yes|no|DIR@:>@], [build the CUDA backend; DIR is the toolkit's folder])],
  [], [with_cuda=auto])
AC_ARG_VAR([NVCC], [the CUDA compiler])
AC_ARG_VAR([CUDA_ARCHS], [nvcc -gencode options (default: sm_75 to sm_90, and PTX for what comes later)])
AC_ARG_VAR([NVCCFLAGS], [flags for nvcc (default -O3)])
mq_have_cuda=no
mq_cuda_summary="no (--with-cuda=no)"
AS_IF([test "x$with_cuda" != xno], [
  AS_CASE([$with_cuda],
    [auto|yes], [mq_cuda_path="$PATH$PATH_SEPARATOR/usr/local/cuda/bin"],
    [mq_cuda_path="$with_cuda/bin"])
  AC_PATH_PROG([NVCC], [nvcc], [], [$mq_cuda_path])
  AS_IF([test -z "$NVCC"], [mq_cuda_summary="no (nvcc not found)"], [
    # nvcc may be a link into the toolkit
    mq_nvcc_real=`readlink -f "$NVCC"`
    mq_cuda_dir=`dirname "$mq_nvcc_real"`
    mq_cuda_dir=`dirname "$mq_cuda_dir"`
    for mq_dir in "$mq_cuda_dir/lib64" "$mq_cuda_dir/targets/x86_64-linux/lib" "$mq_cuda_dir/lib" /usr/lib/x86_64-linux-gnu; do
      AS_IF([test -e "$mq_dir/libcudart_static.a"], [mq_cuda_lib=$mq_dir; break])
    done
    for mq_dir in "$mq_cuda_dir/include" "$mq_cuda_dir/targets/x86_64-linux/include" /usr/include; do
      AS_IF([test -e "$mq_dir/cuda_runtime_api.h"], [mq_cuda_inc=$mq_dir; break])
    done
    AS_IF([test -z "$mq_cuda_lib" || test -z "$mq_cuda_inc"],
      [mq_cuda_summary="no ($NVCC has no libcudart_static.a or headers beside it)"], [
      mq_have_cuda=yes
      mq_cuda_version=`"$NVCC" --version | $SED -n 's/.*release \(@<:@0-9.@:>@*\).*/\1/p'`
      mq_cuda_summary="$mq_cuda_version ($NVCC)"
      CUDA_CPPFLAGS="-isystem $mq_cuda_inc"
      CUDA_LIBS="-L$mq_cuda_lib -lcudart_static -lstdc++ -lpthread -ldl -lrt"])])
  AS_IF([test "$mq_have_cuda" = no && test "x$with_cuda" != xauto],
    [AC_MSG_ERROR([CUDA was asked for: $mq_cuda_summary])])])
AS_IF([test "$mq_have_cuda" = yes], [AC_DEFINE([HAVE_CUDA], [1], [Define to build the CUDA backend.])])
: ${NVCCFLAGS=-O3}
: ${CUDA_ARCHS="-gencode arch=compute_75,code=sm_75 -gencode arch=compute_80,code=sm_80 -gencode arch=compute_86,code=sm_86 -gencode arch=compute_89,code=sm_89 -gencode arch=compute_90,code=sm_90 -gencode arch=compute_90,code=compute_90"}
AC_SUBST([CUDA_CPPFLAGS])
AC_SUBST([CUDA_LIBS])
AM_CONDITIONAL([CUDA], [test "$mq_have_cuda" = yes])
])
