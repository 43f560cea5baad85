package deck

import (
	"fmt"
	"runtime"
	"strings"
)

// panicMessage returns a text about a panic value that is safe to log: the text of a runtime error, or the type of any
// other value. Other values are not logged, because they may contain arguments of a call.
func panicMessage(p any) string {
	if err, ok := p.(runtime.Error); ok {
		return err.Error()
	}
	return fmt.Sprintf("a %T", p)
}

// panicLocation returns the function and line that panicked. Call it from the deferred function that recovers.
func panicLocation() string {
	var pcs [16]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(0, pcs[:])])
	for inPanic := false; ; {
		frame, more := frames.Next()
		inRuntime := strings.HasPrefix(frame.Function, "runtime.")
		switch {
		case inPanic && !inRuntime:
			return fmt.Sprintf("%s:%d", frame.Function, frame.Line)
		case frame.Function == "runtime.gopanic":
			inPanic = true
		}
		if !more {
			return "unknown"
		}
	}
}
