package cli

import "golang.org/x/sys/windows"

// flushInput drops input that was not read yet.
func flushInput(fd int) error { return windows.FlushConsoleInputBuffer(windows.Handle(fd)) }
