// Shape measures how the code of this repository is built and holds it against the limits of the project.
//
//	go run ./internal/tools/shape [DIR]
//
// It prints one line a limit, with the measured value and where it was found, and exits with 1 when one is broken. It
// reads Go files only, by their syntax, whatever their build tags are; generated files, testdata and hidden folders are
// left out. It changes nothing.
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

// report prints the limits and reports whether all of them hold.
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
