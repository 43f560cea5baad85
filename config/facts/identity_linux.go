package facts

import "syscall"

func times(s *syscall.Stat_t) (modified, changed syscall.Timespec) { return s.Mtim, s.Ctim }
