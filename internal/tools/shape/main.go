// Shape measures properties of the code of this repository and compares them with the limits of the project.
//
//	go run ./internal/tools/shape [DIR]
//
// It prints one line for each limit, with the measured value and the places in the code that count. It exits with
// status 1 if a value does not comply with its limit, and with status 2 if the code cannot be read. It parses all Go
// files without type checking, and ignores build tags. It skips generated files, testdata and hidden directories. It
// changes no file.
package main

import (
	"fmt"
	"io"
	"os"
	"text/tabwriter"
)

func main() {
	dir := "."
	if len(os.Args) > 1 {
		dir = os.Args[1]
	}
	shape, err := measure(os.DirFS(dir))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	ok := report(os.Stdout, shape.limits())
	for _, fact := range shape.facts() {
		fmt.Println(fact)
	}
	if !ok {
		os.Exit(1)
	}
}

// report prints the limits and reports whether the measured values comply with all of them.
func report(w io.Writer, limits []limit) bool {
	ok := true
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, l := range limits {
		verdict := "ok"
		if !l.holds() {
			verdict, ok = "BROKEN", false
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", verdict, l.name, l.show(l.value), l.bar(), l.where)
	}
	table.Flush()
	return ok
}
