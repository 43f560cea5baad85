package deck

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/oklog/ulid/v2"
)

// TestSourcesAreWholeSources adds sources at random, and compares the list with a simple one.
func TestSourcesAreWholeSources(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	trail := NewReadTrail()
	var want, since []Source
	known, position := map[Source]bool{}, 0
	for i := range 3 * maxTrailSources {
		s := Source{Kind: "file", Name: fmt.Sprintf("/src/%d", r.IntN(20_000)), Digest: Digest{byte(r.IntN(3))}}
		if i%50 == 0 {
			s = Source{Kind: EntitySource, Name: fmt.Sprint(i)}
		}
		with := s
		with.Call = ulid.Make().String()
		if i == 2*maxTrailSources {
			_, position = trail.SourcesSince("a", 0)
			since = []Source{}
		}
		trail.Add("a", with)
		if known[s] {
			continue
		}
		known[s], want = true, append(want, with)
		if since != nil {
			since = append(since, with)
		}
		if len(want) > maxTrailSources {
			old := want[0]
			old.Call = ""
			delete(known, old)
			want = want[1:]
		}
	}
	got, _ := trail.Sources("a")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%.2000s", diff)
	}
	if later, _ := trail.SourcesSince("a", position); len(since) == 0 || !slices.Equal(later, since) {
		t.Errorf("%d sources since the position; want %d", len(later), len(since))
	}
}

// TestManyResultsOfOneTool: a tool that is called again and again does not push out other sources.
func TestManyResultsOfOneTool(t *testing.T) {
	trail := NewReadTrail()
	file := Source{Kind: "file", Name: "/etc/motd", Digest: Digest{7}}
	trail.Add("a", file)
	for i := range 3 * maxTrailSources {
		trail.Add("a", Source{Kind: "result", Server: "clock", Name: "clock__now", Digest: Digest{1, byte(i), byte(i >> 8)}})
	}
	got, dropped := trail.Sources("a")
	if len(got) != 1+MaxResultVersions || got[0] != file || dropped != 3*maxTrailSources-MaxResultVersions {
		t.Errorf("%d sources, the first is %+v, %d dropped", len(got), got[0], dropped)
	}
	last := Digest{1, byte((3*maxTrailSources - 1) & 0xff), byte((3*maxTrailSources - 1) >> 8)}
	if !slices.ContainsFunc(got, func(s Source) bool { return s.Digest == last }) {
		t.Error("the newest result is missing")
	}
}

// TestTrailMemory holds the memory of 1,000 reads below 200 KB, with their names.
func TestTrailMemory(t *testing.T) {
	const runs, reads = 20, 1000
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	trail := NewReadTrail()
	for run := range runs {
		for i := range reads {
			trail.Add(fmt.Sprint(run), Source{Kind: "file", Digest: Digest{byte(i), byte(i >> 8)}, Call: ulid.Make().String(),
				Name: fmt.Sprintf("/home/ada/project/internal/%s/%d/file_%d.go", strings.Repeat("x", 10), run, i)})
		}
	}
	if got := (heap() - before) / runs; got > 180_000 {
		t.Errorf("1,000 reads need %d bytes", got)
	} else {
		t.Logf("1,000 reads need %d bytes", got)
	}
	runtime.KeepAlive(trail)
}
