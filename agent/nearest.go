package agent

import (
	"cmp"
	"slices"
	"strings"

	"github.com/drawbridge-mcp/drawbridge"
)

// nearestNames returns the three names that are most like a name, the nearest first.
func nearestNames(name drawbridge.CardName, all []drawbridge.CardName) []string {
	type distance struct {
		name string
		n    int
	}
	const maxLength = 128 // a longer name is not a misspelt one
	want := folded(string(name[:min(len(name), maxLength)]))
	var near []distance
	for _, other := range all {
		n := editDistance(want, folded(string(other)))
		if strings.Contains(folded(string(other)), want) {
			n /= 4 // such as a name without its server
		}
		near = append(near, distance{string(other), n})
	}
	slices.SortStableFunc(near, func(a, b distance) int { return cmp.Compare(a.n, b.n) })
	var names []string
	for _, d := range near[:min(3, len(near))] {
		names = append(names, d.name)
	}
	return names
}

// folded returns a name in lower case without "_" and "-".
func folded(name string) string {
	return strings.NewReplacer("_", "", "-", "").Replace(strings.ToLower(name))
}

// editDistance returns how many bytes must be inserted, removed or replaced to make b of a.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replace := diagonal
			if a[i] != b[j] {
				replace++
			}
			diagonal = row[j+1]
			row[j+1] = min(replace, diagonal+1, row[j]+1)
		}
	}
	return row[len(b)]
}
