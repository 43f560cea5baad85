package deck

import (
	"fmt"
	"runtime"
	"strings"
)

// panicMessage is what of a panic may be logged: what the runtime says, else only its type. Others put into it
// whatever they had in their hands, and that may be the arguments of a call.
func panicMessage(p any) string {
	if err, ok := p.(runtime.Error); ok {
		return err.Error()
	}
	return fmt.Sprintf("a %T", p)
}

// panicLocation is the place of the panic that the function which defers its caller recovers from.
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
