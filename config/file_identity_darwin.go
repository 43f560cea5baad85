package config

import "syscall"

func fileTimes(s *syscall.Stat_t) (modified, changed syscall.Timespec) {
	return s.Mtimespec, s.Ctimespec
}
