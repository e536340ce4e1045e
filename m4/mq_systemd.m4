# MQ_SYSTEMD
# ----------
# libsystemd for sd_notify, and where units go: --with-systemdsystemunitdir=DIR and the like, by default
# what pkg-config says of systemd; no units when it knows nothing of it, or with "no". Sets the
# conditional SYSTEMD_UNITS, and systemdsystemunitdir, systemduserunitdir, sysusersdir.
AC_DEFUN([MQ_SYSTEMD_DIR], [
AC_ARG_WITH([$1], [AS_HELP_STRING([--with-$1=DIR], [where $3 go (default: pkg-config's $2 of systemd)])],
  [], [with_$1=auto])
AS_CASE([$with_$1],
  [auto|yes], [$1=`$PKG_CONFIG --variable=$2 systemd 2>/dev/null`],
  [no], [$1=],
  [$1=$with_$1])
AC_SUBST([$1])
])

AC_DEFUN([MQ_SYSTEMD], [
PKG_CHECK_MODULES([SYSTEMD], [libsystemd],
  [AC_DEFINE([HAVE_SYSTEMD], [1], [Define if libsystemd is there.]) have_systemd=yes], [have_systemd=no])
MQ_SYSTEMD_DIR([systemdsystemunitdir], [systemdsystemunitdir], [the system's units])
MQ_SYSTEMD_DIR([systemduserunitdir], [systemduserunitdir], [the users' units])
MQ_SYSTEMD_DIR([sysusersdir], [sysusersdir], [groups of the system])
AM_CONDITIONAL([SYSTEMD_UNITS],
  [test "$have_systemd" = yes && test -n "$systemdsystemunitdir" && test -n "$systemduserunitdir" && test -n "$sysusersdir"])
AM_COND_IF([SYSTEMD_UNITS], [mq_units_summary="units in $systemdsystemunitdir"], [mq_units_summary="no units"])
])
