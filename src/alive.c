/* alive: see alive.h. */
#include "src/alive.h"

_Thread_local atomic_ullong *mq_alive_counter;
