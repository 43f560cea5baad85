package term

import "golang.org/x/sys/windows"

// flushInput drops what was typed and not read yet.
func flushInput(fd int) error { return windows.FlushConsoleInputBuffer(windows.Handle(fd)) }
