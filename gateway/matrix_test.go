//go:build !nomcp

package gateway_test

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"

	"github.com/drawbridge-mcp/drawbridge"
)

// A cell is a pair of generations: the client's and the server's.
type cell struct{ client, server drawbridge.ProtocolEra }

func (c cell) String() string { return c.client.String() + "→" + c.server.String() }

// cells are the columns of the matrix.
var cells = [...]cell{
	{drawbridge.Legacy, drawbridge.Legacy},
	{drawbridge.Modern, drawbridge.Modern},
	{drawbridge.Legacy, drawbridge.Modern},
	{drawbridge.Modern, drawbridge.Legacy},
}

// A feature is a row of the matrix: what it is, and what proves it in one box.
type feature struct {
	name string
	// prove shows that the feature works in the box, and returns the empty text; or returns the error that its client
	// is refused with. Whatever else happens fails the test.
	prove func(b *box) (refused string)
	// refused names the error of the boxes that are to be refused, in the order of cells. The empty text is for a box
	// that passes.
	refused [len(cells)]string
	// alone starts a gateway and a server of its own for each box, which its proof may change or restart; with
	// settings, row and others as in a plan.
	alone bool
	plan  plan
	// idle names the reason why there is nothing to prove for clients of a generation, in words for the table.
	idle map[drawbridge.ProtocolEra]string
	// door is the only one that the feature has a meaning at; empty is both.
	door string
}

// refusedFor names the errors of the boxes by the client's generation, whatever the server's is.
func refusedFor(legacy, modern string) [len(cells)]string {
	return [...]string{legacy, modern, legacy, modern}
}

// A box is one feature in one cell, on one way through the gateway.
type box struct {
	*testing.T
	*rig
	cell cell
	path path
}

// asker returns a client that can be asked everything, plain one that can be asked nothing.
func (b *box) asker() *client { return b.rig.client(b.T, b.cell.client, b.path.door, allCaps) }
func (b *box) plain() *client { return b.rig.client(b.T, b.cell.client, b.path.door, "") }

// features are the rows of the matrix.
func features() []feature {
	var all []feature
	for _, some := range [][]feature{callFeatures(), questionFeatures(), saidFeatures(), listFeatures(),
		stateFeatures(), wordFeatures()} {
		all = append(all, some...)
	}
	return all
}

// TestMatrix proves every feature in every cell, on every way through the gateway, and prints what came of it.
func TestMatrix(t *testing.T) {
	shared := map[plan]*rig{}
	var rows []row
	for _, f := range features() {
		r := row{name: f.name}
		for i, c := range cells {
			r.verdicts[i] = verdictOf(t, f, i, c, shared)
		}
		rows = append(rows, r)
	}
	printMatrix(t.Output(), rows)
}

// A row is a feature with what the table says of it in each cell.
type row struct {
	name     string
	verdicts [len(cells)]string
}

// verdictOf proves a feature in one cell and returns what the table says of it.
func verdictOf(t *testing.T, f feature, i int, c cell, shared map[plan]*rig) string {
	if why := f.idle[c.client]; why != "" {
		return "– " + why
	}
	good := t.Run(f.name+"/"+c.String(), func(inner *testing.T) {
		ways := paths
		if f.alone {
			ways = paths[:2] // each box costs a gateway
		}
		for _, p := range ways {
			if f.door != "" && f.door != p.door {
				continue
			}
			inner.Run(p.String(), func(inner *testing.T) {
				plan := f.plan
				plan.server, plan.upstream = c.server, p.upstream
				r := shared[plan]
				switch {
				case f.alone:
					r = newRig(inner, plan)
				case r == nil:
					r = newRig(t, plan)
					shared[plan] = r
				}
				got := f.prove(&box{inner, r, c, p})
				if got != f.refused[i] {
					inner.Errorf("the outcome is %q, want %q", got, f.refused[i])
				}
			})
		}
	})
	switch {
	case !good:
		return "FAILS"
	case f.refused[i] != "":
		return f.refused[i]
	}
	return "✓"
}

// printMatrix writes the table. A refusal stands there by its code, or its first word, and in whole below.
func printMatrix(out io.Writer, rows []row) {
	var table bytes.Buffer
	w := tabwriter.NewWriter(&table, 0, 0, 3, ' ', 0)
	var notes []string
	_, _ = fmt.Fprint(w, "feature")
	for _, c := range cells {
		_, _ = fmt.Fprint(w, "\t", c)
	}
	for _, r := range rows {
		_, _ = fmt.Fprint(w, "\n", r.name)
		for _, verdict := range r.verdicts {
			word, rest, refused := strings.Cut(verdict, " ")
			if refused {
				if !slices.Contains(notes, rest) {
					notes = append(notes, rest)
				}
				verdict = fmt.Sprintf("%s (%d)", word, slices.Index(notes, rest)+1)
			}
			_, _ = fmt.Fprint(w, "\t", verdict)
		}
	}
	_ = w.Flush()
	_, _ = fmt.Fprintf(out, "%s\n\n", table.Bytes())
	for i, note := range notes {
		_, _ = fmt.Fprintf(out, "(%d) %s\n", i+1, note)
	}
}
