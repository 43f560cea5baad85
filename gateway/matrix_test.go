//go:build !nomcp

package gateway_test

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"
	"text/tabwriter"

	"github.com/drawbridge-mcp/drawbridge"
)

// A cell is a pair of generations: the client's and the server's.
type cell struct{ client, server drawbridge.Era }

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
	// prove shows that the feature works in the box, and gives the empty text; or gives the error that its client is
	// refused with. Whatever else happens fails the test.
	prove func(b *box) (refused string)
	// refused names the error of the boxes that are to be refused, in the order of cells; "…" at the end stands for any
	// rest. The empty text is for a box that passes.
	refused [len(cells)]string
	// alone gives each box a gateway and a server of its own, which its proof may change or restart; with settings, row
	// and others as in a plan.
	alone bool
	plan  plan
	// needs leaves out the ways on which the feature has no meaning; nil leaves out none.
	needs func(c cell, p path) bool
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

// asker gives a client that can be asked everything, plain one that can be asked nothing.
func (b *box) asker() *client { return b.rig.client(b.T, b.cell.client, b.path.door, allCaps) }
func (b *box) plain() *client { return b.rig.client(b.T, b.cell.client, b.path.door, "") }

// features are the rows of the matrix.
func features() []feature {
	var all []feature
	for _, some := range [][]feature{callFeatures(), questionFeatures(), saidFeatures(), listFeatures(), stateFeatures(), wordFeatures()} {
		all = append(all, some...)
	}
	return all
}

// TestMatrix proves every feature in every cell, on every way through the gateway, and prints what came of it.
func TestMatrix(t *testing.T) {
	shared := map[plan]*rig{}
	var rows []string
	for _, f := range features() {
		row := f.name
		for i, c := range cells {
			row += "\t" + verdictOf(t, f, i, c, shared)
		}
		rows = append(rows, row)
	}
	printMatrix(t.Output(), rows)
}

// verdictOf proves a feature in one cell and gives what the table says of it.
func verdictOf(t *testing.T, f feature, i int, c cell, shared map[plan]*rig) string {
	good := t.Run(f.name+"/"+c.String(), func(inner *testing.T) {
		for _, p := range paths {
			if f.needs != nil && !f.needs(c, p) {
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
				if !matches(got, f.refused[i]) {
					inner.Errorf("the outcome is %q, want %q", got, f.refused[i])
				}
			})
		}
	})
	switch {
	case !good:
		return "✗"
	case f.refused[i] != "":
		return f.refused[i]
	}
	return "✓"
}

// matches says whether an outcome is the one that the table names.
func matches(got, want string) bool {
	if start, ok := strings.CutSuffix(want, "…"); ok {
		return strings.HasPrefix(got, start)
	}
	return got == want
}

// printMatrix writes the table.
func printMatrix(out io.Writer, rows []string) {
	var table bytes.Buffer
	w := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	head := "feature"
	for _, c := range cells {
		head += "\t" + c.String()
	}
	for _, row := range append([]string{head}, rows...) {
		_, _ = fmt.Fprintln(w, row)
	}
	_ = w.Flush()
	_, _ = fmt.Fprintf(out, "%s", table.Bytes())
}
