//go:build bench

package bench

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestControls holds the relays to what they are: each answer comes with its own id, also if several requests are in
// flight.
func TestControls(t *testing.T) {
	for _, kind := range []string{"bytes", "inline", "hands"} {
		t.Run(kind, func(t *testing.T) {
			p := start(t, role(t, "relay", kind, self(t)))
			want := []string{`"a7"`, `"b"`, `903`}
			for i, id := range want {
				body := says("", fmt.Sprintf("text %d", i)).body
				if _, err := p.in.Write([]byte(`{"jsonrpc":"2.0","id":` + id + string(body) + "\n")); err != nil {
					t.Fatal(err)
				}
			}
			var got []string
			for range want {
				answer, err := p.out.ReadString('\n')
				if err != nil {
					t.Fatal(err)
				}
				for i, id := range want {
					if strings.Contains(answer, `"id":`+id+`,`) && strings.Contains(answer, fmt.Sprintf("text %d", i)) {
						got = append(got, id)
					}
				}
			}
			slices.Sort(got)
			slices.Sort(want)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestFamily tells the processes of Drawbridge's own from those of servers.
func TestFamily(t *testing.T) {
	config, store := configure(t, append(lean(1), onStdio("up", self(t)))...)
	p := start(t, serve(config, store))
	c := p.stdio()
	mounted(t, c, small("s00__"))
	mounted(t, c, small("up__"))
	own, servers := family(p.cmd.Process.Pid)
	if !slices.Contains(own, p.cmd.Process.Pid) || len(servers) != 2 {
		t.Errorf("own processes %d, of servers %d; want two of servers", own, servers)
	}
	used := usageOf(p)
	if m := memoryOf(own); m.processes != len(own) || m.rss < m.private || m.threads < len(own) {
		t.Errorf("memory of %d processes: %s", len(own), m)
	}
	several(t, c, small("up__"), 50)
	if µs := usageOf(p).since(used); len(used) > 0 && µs <= 0 {
		t.Errorf("50 calls took %.0f µs of processor time", µs)
	}
	n, by, err := countSyscalls(own, func() error {
		several(t, c, small("up__"), 50)
		return nil
	})
	if err != nil || by != "" && n < 50*2 {
		t.Errorf("50 calls made %.0f system calls by %q, %v; a call reads and writes at least once each", n, by, err)
	}
}

func TestDifferences(t *testing.T) {
	for _, one := range []struct {
		want, got string
		lost      []string
	}{
		{`{"a":1.50,"_meta":{}}`, `{"_meta":{"x":1},"a":1.50}`, nil},
		{`{"a":1.50}`, `{"a":1.5}`, []string{".a is 1.5, was 1.50"}},
		{`{"a":[{"b":1}]}`, `{"a":[{}]}`, []string{".a[0].b is lost"}},
		{`{"a":[1]}`, `{"a":[1,2]}`, []string{".a is [1 2], was [1]"}},
		{`{"a":null}`, `{"b":null}`, []string{".a is lost", ".b is new"}},
	} {
		want, err := decoded([]byte(one.want))
		if err != nil {
			t.Fatal(err)
		}
		got, err := decoded([]byte(one.got))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(one.lost, differences("", want, got)); diff != "" {
			t.Errorf("%s and %s: %s", one.want, one.got, diff)
		}
	}
}

func TestRatio(t *testing.T) {
	if got := ratio([]float64{2, 30, 5}, []float64{1, 10, 5, 7}); got != 2 {
		t.Errorf("ratio %v, want the median of 2, 3 and 1", got)
	}
	if got := (line{value: 3, bar: 2, timed: true}); got.ok() || got.fails() {
		t.Errorf("a new bar that is missed: ok %v, fails %v", got.ok(), got.fails())
	}
	if got := held([]line{{value: 3, bar: 2}})[0]; !got.fails() {
		t.Error("an old bar that is missed does not fail the run")
	}
}
