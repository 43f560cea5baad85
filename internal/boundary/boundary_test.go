package boundary_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/deck"
	"github.com/drawbridge-mcp/drawbridge/internal/boundary"
	"github.com/drawbridge-mcp/drawbridge/internal/store"
	"github.com/drawbridge-mcp/drawbridge/internal/storetest"
	"github.com/drawbridge-mcp/drawbridge/internal/workspace"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// open opens a workspace for callers.
func open(t testing.TB, location string) (*boundary.Workspace, *store.Workspace) {
	t.Helper()
	db, err := store.OpenWorkspace(t.Context(), location, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return boundary.New(db, "test", deck.NewReadTrail(), nil), db
}

// writes is the registration of a tool that writes text.
var writes = drawbridge.Spec{Name: "page_create", Crossing: &drawbridge.Crossing{Content: "text", Sources: "sources", ReadTrail: true, Write: "page"}}

// A role is a caller of the test, with what its content must be.
type role struct {
	caller drawbridge.Caller
	origin workspace.Origin
	// person reports that the caller may write canonical content.
	person bool
}

// roles returns callers of all kinds, proven and not, each with a run of its own.
func roles(n int) []role {
	all := []drawbridge.Scope{"*"}
	run := fmt.Sprint("r", n)
	author := drawbridge.Caller{Kind: drawbridge.Author, Principal: "ann", Session: run, Scopes: all}
	helper := drawbridge.Caller{Kind: drawbridge.Agent, Principal: "ann", Thread: "t", Run: run, Scopes: all}
	client := drawbridge.Caller{Kind: drawbridge.External, Principal: "client:x", Session: run, Scopes: all}
	observer := client
	observer.Origin, observer.Session = "observed", run+"o"
	forged := author
	forged.Session = run + "f"
	script := boundary.Prove(helper)
	script.StartedBy, script.Kind = script.Kind, drawbridge.Sandbox
	return []role{
		{boundary.Prove(author), workspace.Authored, true}, {boundary.Prove(helper), workspace.AgentProduced, false},
		{client, workspace.AgentProduced, false}, {observer, workspace.Observed, false}, {forged, workspace.AgentProduced, false},
		{script, workspace.AgentProduced, false},
	}
}

// TestRandomCallers has callers of all kinds read and write at random, at the same time. Each content has the origin of
// its caller, is derived from what the run has read before, and is canonical only if a person wrote or accepted it.
func TestRandomCallers(t *testing.T) {
	t.Run("SQLite", func(t *testing.T) { testRandomCallers(t, filepath.Join(t.TempDir(), "w.db")) })
	t.Run("Postgres", func(t *testing.T) { testRandomCallers(t, storetest.PostgresSchema(t)) })
}

func testRandomCallers(t *testing.T, location string) {
	w, db := open(t, location)
	ctx := t.Context()
	var mu sync.Mutex
	var pages []workspace.ID
	anyPage := func(random *rand.Rand) workspace.ID {
		mu.Lock()
		defer mu.Unlock()
		if len(pages) == 0 {
			return "none"
		}
		return pages[random.IntN(len(pages))]
	}
	var working sync.WaitGroup
	for n := range 4 {
		working.Go(func() {
			random := rand.New(rand.NewPCG(uint64(n), 2))
			all := roles(n)
			read := map[string]map[workspace.ID]bool{} // by run
			for i := range 40 {
				r := all[random.IntN(len(all))]
				run := deck.RunOf(r.caller)
				if read[run] == nil {
					read[run] = map[workspace.ID]bool{}
				}
				call := drawbridge.Call{Caller: r.caller}
				if random.IntN(2) == 0 {
					if v, err := w.Page(ctx, call, string(anyPage(random))); err == nil {
						read[run][v.ID] = true
					}
					continue
				}
				lifecycle := []workspace.Lifecycle{"", workspace.Canonical}[random.IntN(2)]
				change := workspace.CreatePage{Title: fmt.Sprintf("%d %d", n, i), Blocks: []workspace.NewBlock{{Type: "markdown", Text: "x"}}}
				receipts, err := w.Cross(ctx, call, writes, deck.PreparedWrite{Lifecycle: lifecycle}, []workspace.Change{change})
				if lifecycle == workspace.Canonical && !r.person {
					if f, ok := errors.AsType[*drawbridge.Fault](err); !ok || f.Code != drawbridge.PolicyBlocked {
						t.Errorf("%v wrote canonical content: %v", r.caller.Kind, err)
					}
					continue
				}
				if err != nil {
					t.Error(err)
					continue
				}
				id := receipts[0].Page
				mu.Lock()
				pages = append(pages, id)
				mu.Unlock()
				v, err := db.Page(ctx, string(id))
				if err != nil || v.Origin != r.origin || v.Lifecycle == workspace.Canonical && !r.person || (v.Run == "") != r.person {
					t.Errorf("the page of %v is %+v, %v", r.caller.Kind, v.Stamp, err)
				}
				sources, err := db.Sources(ctx, id)
				want := len(read[run])
				if r.person {
					want = 0
				}
				if err != nil || len(sources) != want || slices.ContainsFunc(sources, func(s workspace.ID) bool { return !read[run][s] }) {
					t.Errorf("the sources of %v are %v, %v; it has read %v", r.caller.Kind, sources, err, read[run])
				}
			}
		})
	}
	working.Wait()
	if len(pages) < 20 {
		t.Errorf("only %d pages were written", len(pages))
	}
}

// TestNamedSources names sources by IDs and slugs.
func TestNamedSources(t *testing.T) {
	w, db := open(t, filepath.Join(t.TempDir(), "w.db"))
	person := drawbridge.Call{Caller: roles(0)[0].caller}
	made, err := w.Cross(t.Context(), person, writes, deck.PreparedWrite{}, []workspace.Change{workspace.CreatePage{Title: "One"},
		workspace.CreatePage{Title: "Two"}})
	if err != nil {
		t.Fatal(err)
	}
	person.Params = []byte(`{"arguments":{"sources":["one","` + string(made[1].Page) + `"]}}`)
	sum, err := w.Cross(t.Context(), person, writes, deck.PreparedWrite{}, []workspace.Change{workspace.CreatePage{Title: "Sum"}})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := db.Sources(t.Context(), sum[0].Page); err != nil || len(got) != 2 {
		t.Errorf("the sources are %v, %v", got, err)
	}
	for _, params := range []string{`{"arguments":{"sources":["none"]}}`, `{"arguments":{"sources":"one"}}`} {
		person.Params = []byte(params)
		if _, err := w.Cross(t.Context(), person, writes, deck.PreparedWrite{}, []workspace.Change{workspace.CreatePage{Title: "Wrong"}}); err == nil {
			t.Errorf("%s was accepted", params)
		}
	}
}

// TestGrantsNarrow: a grant takes capabilities away, of one principal or of all callers of a kind.
func TestGrantsNarrow(t *testing.T) {
	w, _ := open(t, filepath.Join(t.TempDir(), "w.db"))
	all := roles(0)
	person, helper, client := drawbridge.Call{Caller: all[0].caller}, drawbridge.Call{Caller: all[1].caller}, drawbridge.Call{Caller: all[2].caller}
	grants := drawbridge.Spec{Crossing: &drawbridge.Crossing{Write: "permission"}}
	grant := func(principal string, held ...workspace.Capability) {
		t.Helper()
		if _, err := w.Cross(t.Context(), person, grants, deck.PreparedWrite{}, []workspace.Change{workspace.SetGrant{Principal: principal,
			Capabilities: held}}); err != nil {
			t.Fatal(err)
		}
	}
	held := func(call drawbridge.Call) []workspace.Capability {
		t.Helper()
		_, actor, err := w.Access(t.Context(), call)
		if err != nil {
			t.Fatal(err)
		}
		return actor.Capabilities
	}
	usual := []workspace.Capability{workspace.Read, workspace.Propose, workspace.Remember}
	if got := held(person); len(got) != len(workspace.Capabilities()) {
		t.Errorf("the person holds %v", got)
	}
	if got := [][]workspace.Capability{held(helper), held(client)}; !slices.Equal(got[0], usual) || !slices.Equal(got[1], usual) {
		t.Errorf("the agent and the client hold %v", got)
	}
	grant("kind:agent", workspace.Read, workspace.Author)
	grant("client:x")
	if got := held(helper); !slices.Equal(got, []workspace.Capability{workspace.Read, workspace.Author}) {
		t.Errorf("the agent holds %v", got)
	}
	if got := held(client); len(got) != 0 {
		t.Errorf("the client holds %v", got)
	}
	grant("kind:client", workspace.Read)
	grant("client:x", workspace.Capabilities()...)
	if got := held(client); !slices.Equal(got, []workspace.Capability{workspace.Read}) {
		t.Errorf("the client holds %v", got)
	}
}
