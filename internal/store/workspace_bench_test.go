//go:build bench

package store_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/drawbridge-mcp/drawbridge/internal/workspace"
)

// words makes texts: the word with the number n is the more frequent the lower n is.
func words(random *rand.Rand, n int) string {
	var b strings.Builder
	for i := range n {
		if i > 0 {
			b.WriteByte(' ')
		}
		fmt.Fprintf(&b, "word%d", int(random.ExpFloat64()*2000))
		if random.IntN(20) == 0 {
			b.WriteString(" common")
		}
	}
	return b.String()
}

func percentile(all []time.Duration, p int) time.Duration {
	slices.Sort(all)
	return all[len(all)*p/100]
}

// TestWorkspaceNumbers measures workspaces of 1,000 to 100,000 pages. Nothing grows faster than n log n.
func TestWorkspaceNumbers(t *testing.T) {
	all := map[int]map[string]time.Duration{}
	sizes := []int{1000, 10_000, 100_000}
	for _, size := range sizes {
		t.Run(fmt.Sprint(size), func(t *testing.T) { all[size] = measureWorkspace(t, size) })
	}
	small, large := sizes[0], sizes[len(sizes)-1]
	bound := float64(large) * math.Log(float64(large)) / (float64(small) * math.Log(float64(small)))
	for what, took := range all[large] {
		growth := float64(took) / float64(all[small][what])
		t.Logf("%s: %.1f times as long with %d pages as with %d (bar %.0f)", what, growth, large, small, bound)
		if growth > bound {
			t.Errorf("%s grows by %.1f, want at most %.0f", what, growth, bound)
		}
	}
}

// measureWorkspace returns the median of each operation, and the time of the import.
func measureWorkspace(t *testing.T, size int) map[string]time.Duration {
	medians := map[string]time.Duration{}
	d := openDesk(t, filepath.Join(t.TempDir(), "w.db"))
	random := rand.New(rand.NewPCG(1, 1))
	write := func(a workspace.Actor, c workspace.Change, sources ...workspace.ID) workspace.Write {
		w, err := workspace.NewWrite(a, workspace.Proposal{Change: c, Sources: sources, At: time.Now()})
		if err != nil {
			t.Fatal(err)
		}
		return w
	}
	began := time.Now()
	titles := importPages(t, d, random, size)
	medians["import"] = time.Since(began)
	t.Logf("import: %.0f pages/s (bar 1500)", float64(size)/time.Since(began).Seconds())

	timed := func(what string, bar time.Duration, n int, f func(i int) error) {
		var took []time.Duration
		for i := range n {
			began := time.Now()
			if err := f(i); err != nil {
				t.Fatalf("%s: %v", what, err)
			}
			took = append(took, time.Since(began))
		}
		p95 := percentile(took, 95)
		medians[what] = took[len(took)/2]
		t.Logf("%s: p50 %v, p95 %v (bar %v)", what, took[len(took)/2].Round(10*time.Microsecond), p95.Round(10*time.Microsecond), bar)
		if p95 > bar && !testing.Short() {
			t.Errorf("%s: %v, want at most %v", what, p95, bar)
		}
	}
	timed("search with two or three words of a title", 30*time.Millisecond, 300, func(i int) error {
		query := strings.Fields(titles[random.IntN(len(titles))])
		_, err := d.Search(t.Context(), strings.Join(query[:2+i%2], " "), workspace.Window{Limit: 20})
		return err
	})
	timed("search with one word of most pages", 150*time.Millisecond, 50, func(int) error {
		hits, err := d.Search(t.Context(), "common", workspace.Window{Limit: 20})
		if err == nil && len(hits) != 20 {
			err = fmt.Errorf("%d hits", len(hits))
		}
		return err
	})
	timed("read of a page", 2*time.Millisecond, 300, func(int) error {
		_, err := d.Page(t.Context(), workspace.SlugOf(titles[random.IntN(len(titles))]))
		return err
	})
	source := d.does(ann, newPage("Source", "fact")).Page
	for done := 0; done < 10_000; done += 500 {
		var batch []workspace.Write
		for range 500 {
			batch = append(batch, write(agent, newPage("Derived", "text"), source))
		}
		if _, err := d.Apply(t.Context(), batch...); err != nil {
			t.Fatal(err)
		}
	}
	timed("flags of 10,000 derived pages", 200*time.Millisecond, 5, func(i int) error {
		r, err := d.try(ann, workspace.SetBlock{Page: source, Slot: "b1", Text: fmt.Sprint("fact ", i)})
		if err == nil && r.Flagged != 10_000 {
			err = fmt.Errorf("%d were flagged", r.Flagged)
		}
		return err
	})
	timed("write of a block", 50*time.Millisecond, 100, func(i int) error {
		_, err := d.try(agent, workspace.SetBlock{Page: d.page("derived").ID, Slot: "b1", Text: fmt.Sprint("text ", i)})
		return err
	})
	return medians
}

// importPages imports random pages, and returns their titles.
func importPages(t *testing.T, d desk, random *rand.Rand, size int) (titles []string) {
	for done := 0; done < size; done += 500 {
		var batch []workspace.Write
		for range 500 {
			title := words(random, 4)
			titles = append(titles, title)
			w, err := workspace.NewWrite(importer, workspace.Proposal{At: time.Now(),
				Change: newPage(title, words(random, 40)+"\n\n", words(random, 40)+"\n")})
			if err != nil {
				t.Fatal(err)
			}
			batch = append(batch, w)
		}
		if _, err := d.Apply(t.Context(), batch...); err != nil {
			t.Fatal(err)
		}
	}
	return titles
}
