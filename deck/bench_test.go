package deck

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// crowd is the listings of servers with so many tools each, of the size that tools have.
func crowd(servers, tools int) []drawbridge.Listing {
	out := make([]drawbridge.Listing, servers)
	for i := range out {
		out[i] = drawbridge.Listing{Server: drawbridge.ServerID(fmt.Sprintf("server%d", i)), ConfigHash: "row"}
		for j := range tools {
			out[i].Tools = append(out[i].Tools,
				json.RawMessage(
					fmt.Sprintf(`{"name":"tool_%d","title":"Tool %d","description":"Does the thing that has the number %d, and says what came of it in a sentence or two.","inputSchema":{"type":"object","properties":{"path":{"type":"string","description":"Where."},"limit":{"type":"integer"}},"required":["path"]},"annotations":{"readOnlyHint":true}}`, j, j, j)))
		}
	}
	return out
}

// BenchmarkCall is what the deck adds to a small call.
func BenchmarkCall(b *testing.B) {
	d := open(b, &fake{answer: nil}, Options{}, crowd(10, 100)...)
	d.upstream, d.maker.upstream = quiet{}, quiet{}
	call := drawbridge.Call{Caller: ada, Params: json.RawMessage(
		`{"_meta":{"progressToken":1},"name":"server7__tool_42","arguments":{"path":"0123456789012345678901234567890123456789"}}`)}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := d.Call(b.Context(), call); err != nil {
			b.Fatal(err)
		}
	}
}

// quiet is an upstream that answers at once and remembers nothing.
type quiet struct{ *fake }

func (quiet) Do(_ context.Context, _ drawbridge.ServerID, _ drawbridge.Call) (drawbridge.Result, error) {
	return drawbridge.Result{Raw: json.RawMessage(`{"content":[{"type":"text","text":"ok"}]}`)}, nil
}

// BenchmarkLargeResult is what the deck adds to a result of 256 KiB.
func BenchmarkLargeResult(b *testing.B) {
	raw := rawjson.Apply(nil, rawjson.Put(rawjson.Quote(string(make([]byte, 256<<10))), "text"))
	b.SetBytes(int64(len(raw)))
	d := open(b, &fake{}, Options{}, crowd(1, 1)...)
	for b.Loop() {
		d.sealer.sealResultState(raw, stateBinding{})
	}
}

// BenchmarkView is one whole view of 10,000 cards.
func BenchmarkView(b *testing.B) {
	d := open(b, &fake{}, Options{}, crowd(50, 200)...)
	v := d.view.Load()
	b.ReportAllocs()
	for b.Loop() {
		newView(d.guards, nil, v.servers, v, v, d.nextVersion)
	}
}

// BenchmarkEnrolOneChange is one changed tool among 10,000.
func BenchmarkEnrolOneChange(b *testing.B) {
	all := crowd(50, 200)
	d := open(b, &fake{}, Options{}, all...)
	changed := all[25]
	changed.Tools = append([]json.RawMessage{}, changed.Tools...)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		changed.Tools[100] = json.RawMessage(fmt.Sprintf(`{"name":"tool_100","description":"Version %d."}`, i))
		enrol(b, d, changed)
	}
}

// BenchmarkEnrolTheSame is the boot of a server of 10,000 tools whose stored listing says nothing new.
func BenchmarkEnrolTheSame(b *testing.B) {
	all := crowd(1, 10_000)
	d := open(b, &fake{}, Options{MaxTools: 10_000}, all...)
	b.ReportAllocs()
	for b.Loop() {
		enrol(b, d, all[0])
	}
}

// BenchmarkList is a list of 10,000 tools, for a caller who sees all and for one who sees a part.
func BenchmarkList(b *testing.B) {
	d := open(b, &fake{}, Options{}, crowd(50, 200)...)
	part := bob
	part.Scopes = []drawbridge.Scope{"mcp:server1*"}
	for name, caller := range map[string]drawbridge.Caller{"all": ada, "part": part} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := d.List(b.Context(), caller, mcp.MethodToolsList); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkVeryManyNotes is what it takes to look again at a server about which there is very much to say, all of it
// new: to grow as that does, since no one else can change the deck meanwhile.
func BenchmarkVeryManyNotes(b *testing.B) {
	for _, many := range []int{4000, 40_000} {
		b.Run(fmt.Sprint(many), func(b *testing.B) {
			round := 0
			vet := censor(func(v VettedListing) (VettedListing, error) {
				round++
				v.Notes = nil
				for i := range many {
					v.Notes = append(v.Notes, VettingNote{Kind: "prompt", Name: fmt.Sprintf("p%05d of %d", i,
						round), Action: "cut"})
				}
				return v, nil
			})
			d := openVetted(b, vet, &fake{}, Options{}, listing("a", "one"))
			for b.Loop() {
				if err := vet.reenrol(b.Context(), d, "a"); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
