package safetext

import (
	"fmt"
	"io"
)

// Shown is text that Fprintf, Fprintln and Sprintf print as it is: our own colours, or what Text or Exact returned.
type Shown string

// Fprintf is fmt.Fprintf with each argument shown on one line as Line shows it. The format is printed as it is.
func Fprintf(w io.Writer, format string, args ...any) (int, error) {
	return fmt.Fprintf(w, format, wrapped(args)...)
}

// Fprintln is fmt.Fprintln with each argument shown on one line as Line shows it.
func Fprintln(w io.Writer, args ...any) (int, error) { return fmt.Fprintln(w, wrapped(args)...) }

// Sprintf is fmt.Sprintf with each argument shown on one line as Line shows it.
func Sprintf(format string, args ...any) string { return fmt.Sprintf(format, wrapped(args)...) }

func wrapped(args []any) []any {
	all := make([]any, len(args))
	for i, arg := range args {
		switch arg.(type) {
		case Shown, bool, int, int32, int64, uint, uint16, uint32, uint64, float64:
			all[i] = arg
		default:
			all[i] = argument{arg}
		}
	}
	return all
}

// An argument is a value that is shown on one line, whatever the verb.
type argument struct{ value any }

// Format formats the value, and shows the result as Line does. The width is filled up after that.
func (a argument) Format(f fmt.State, verb rune) {
	switch _, wide := f.Width(); {
	case verb == 's' || verb == 'v' && !f.Flag('+') && !f.Flag('#'):
		fmt.Fprintf(f, fmt.FormatString(f, verb), Line(fmt.Sprintf("%"+string(verb), a.value)))
	case wide:
		fmt.Fprintf(f, fmt.FormatString(f, verb), a.value) // a number: texts are not filled up otherwise
	default:
		io.WriteString(f, Line(fmt.Sprintf(fmt.FormatString(f, verb), a.value)))
	}
}
