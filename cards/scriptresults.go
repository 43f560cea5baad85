package cards

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"unicode/utf8"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
	"github.com/drawbridge-mcp/drawbridge/sandbox"
)

// A ScriptResults says how run_python keeps large results for the next script of the same session. With the zero value
// it keeps nothing and returns every result as a whole.
type ScriptResults struct {
	// Store stores the results. Several gateways may share it.
	Store *ResultStore
	// Gateway identifies the gateway: the results of one cannot be read in another.
	Gateway string
	// Limit is how many bytes of the output and the value are returned; the default is [DefaultResultLimit].
	Limit int
}

// DefaultResultLimit is the default of [ScriptResults].Limit.
const DefaultResultLimit = 32 << 10

// A runPythonOutput is the outcome of a script, with parts of it kept for the next script.
type runPythonOutput struct {
	sandbox.Outcome
	Results []cutPart `json:"results,omitempty" jsonschema:"The parts that are cut; tools.result(id) reads them as a whole in the next script."`
}

// The parts of an outcome that may be cut. A value is then a text, in Outcome.Repr.
const (
	stdoutPart = "stdout"
	stderrPart = "stderr"
	valuePart  = "value"
)

// A cutPart is a part of an outcome of which only the beginning is returned.
type cutPart struct {
	// ID is the id of the kept text; empty if it could not be kept.
	ID   string `json:"id,omitempty"`
	Part string `json:"part" jsonschema:"stdout, stderr or value."`
	// Length is the number of characters of the whole part, Returned that of the beginning.
	Length   int `json:"length" jsonschema:"The number of characters of the whole part."`
	Returned int `json:"returned" jsonschema:"The number of characters in this result."`
}

// rest returns a line about what is missing of a part; empty if nothing is.
func (o runPythonOutput) rest(part string) string {
	for _, c := range o.Results {
		switch {
		case c.Part != part:
		case c.ID == "":
			return fmt.Sprintf("[%d more characters, which were too many to keep]", c.Length-c.Returned)
		case part == valuePart:
			return fmt.Sprintf("[%d more characters: in the next script, r = tools.result(%q) has r[a:b], r.json() and r.select(jsonpath)]",
				c.Length-c.Returned, c.ID)
		default:
			return fmt.Sprintf("[%d more characters: in the next script, r = tools.result(%q) has r[a:b] and r.lines(a, b)]",
				c.Length-c.Returned, c.ID)
		}
	}
	return ""
}

// cutsOutcome reports whether large results are kept and cut. The person at the command line gets all that is printed.
func (h *scriptHost) cutsOutcome() bool {
	return h.results.Store != nil && h.run.Caller.Kind != drawbridge.Author
}

// limits returns the limits of the run. A value that is kept may be as large as a request.
func (h *scriptHost) limits(l sandbox.Limits) sandbox.Limits {
	if h.cutsOutcome() {
		l.Value = l.Transfer
	}
	return l
}

// cutOutcome keeps the output and the value if they are larger than the limit together, and cuts the large ones.
func (h *scriptHost) cutOutcome(o sandbox.Outcome) runPythonOutput {
	out, value := runPythonOutput{Outcome: o}, valueText(o)
	left := cmp.Or(h.results.Limit, DefaultResultLimit)
	if !h.cutsOutcome() || len(o.Stdout)+len(o.Stderr)+len(value) <= left {
		return out
	}
	parts := []struct {
		name string
		text *string
	}{{stdoutPart, &out.Stdout}, {stderrPart, &out.Stderr}, {valuePart, &value}}
	// The smallest first: what it does not need is left for the others.
	order := slices.SortedStableFunc(slices.Values([]int{0, 1, 2}), func(a, b int) int {
		return cmp.Compare(len(*parts[a].text), len(*parts[b].text))
	})
	cut := make([]*cutPart, len(parts))
	for i, n := range order {
		whole, share := *parts[n].text, left/(len(parts)-i)
		if len(whole) <= share {
			left -= len(whole)
			continue
		}
		left -= share
		begin := safetext.Truncate(whole, share, safetext.Bytes, "")
		*parts[n].text = begin
		c := &cutPart{Part: parts[n].name, Returned: utf8.RuneCountInString(begin)}
		var err error
		if c.ID, c.Length, err = h.keep(whole, ""); err != nil {
			c.Length, out.Truncated = utf8.RuneCountInString(whole), true
		}
		cut[n] = c
	}
	for _, c := range cut {
		if c != nil {
			out.Results = append(out.Results, *c)
		}
	}
	if cut[2] != nil {
		out.Value, out.Repr = nil, value
	}
	return out
}

// addCalled notes that the script may have the result of a tool, unless the tool does not exist. name is the name in
// the script, called the name with which the deck was asked.
func (h *scriptHost) addCalled(ctx context.Context, name string, called drawbridge.CardName, err error) {
	if isUnknown(err) {
		return
	}
	h.mu.Lock()
	_, listed := h.found[name]
	h.mu.Unlock()
	if !listed {
		if spec, ok := h.find(ctx, name); ok { // its server has started now
			called = spec.Name
		}
	}
	h.addSources(called)
}

// addRepeated notes that the script has a recorded result of a tool. A tool that does not exist for the script counts
// too, because it may have existed.
func (h *scriptHost) addRepeated(ctx context.Context, name string) {
	if called, ok := h.calledName(ctx, name); ok {
		h.addCalled(ctx, name, called, nil)
	} else {
		h.addSources(drawbridge.CardName(name))
	}
}

// addSources notes that the script may have results of these tools.
func (h *scriptHost) addSources(names ...drawbridge.CardName) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, name := range names {
		h.sources[name] = true
	}
}

// keep keeps a text for the next scripts, with the tools from which it may be derived. id is its id in the run that is
// repeated, or empty.
func (h *scriptHost) keep(text, id string) (keptID string, length int, err error) {
	h.mu.Lock()
	sources := slices.Sorted(maps.Keys(h.sources))
	h.mu.Unlock()
	return h.results.Store.keep(newResultOwner(h.results.Gateway, h.run.Caller), id, text,
		resultOrigin{tools: sources, foreign: h.foreign.Load()})
}

// mayRead reports whether the script may call all of these tools now. A caller that lost a tool lost its results too.
func (h *scriptHost) mayRead(ctx context.Context, names []drawbridge.CardName) bool {
	if len(names) == 0 {
		return true
	}
	callable := map[drawbridge.CardName]bool{}
	for _, s := range h.tools.Tools(ctx, h.call.Caller, false) {
		callable[s.Name] = h.isRequested(s.Name)
	}
	return !slices.ContainsFunc(names, func(name drawbridge.CardName) bool { return !callable[name] })
}

var _ sandbox.ResultKeeper = (*scriptHost)(nil)

// Keep implements [sandbox.ResultKeeper].
func (h *scriptHost) Keep(_ context.Context, text, id string) (sandbox.KeptResult, error) {
	if h.results.Store == nil {
		return sandbox.KeptResult{}, &sandbox.CallError{Message: "results are not kept here"}
	}
	id, length, err := h.keep(text, id)
	if err != nil {
		return sandbox.KeptResult{}, &sandbox.CallError{Code: "limit", Message: err.Error()}
	}
	return sandbox.KeptResult{ID: id, Length: length}, nil
}

// Read implements [sandbox.ResultKeeper]. The error is the same for a result that does not exist, that has expired, that
// belongs to another session, and that the caller may no longer read.
func (h *scriptHost) Read(ctx context.Context, id string, at, size int) (sandbox.ResultPart, error) {
	if h.results.Store != nil {
		text, length, origin, ok := h.results.Store.read(newResultOwner(h.results.Gateway, h.run.Caller), id, at, size,
			func(names []drawbridge.CardName) bool { return h.mayRead(ctx, names) })
		if ok {
			h.addSources(origin.tools...)
			if origin.foreign {
				h.foreign.Store(true)
			}
			return sandbox.ResultPart{Text: text, Length: length, Tools: toolNames(origin.tools)}, nil
		}
	}
	return sandbox.ResultPart{}, &sandbox.CallError{Code: string(drawbridge.NotFound),
		Message: "unknown result " + safetext.Truncate(id, maxShownID, safetext.Bytes, "…"),
		Next:    "results are kept for a session, for 30 minutes after their last use"}
}

// toolNames returns names of tools as they are for scripts.
func toolNames(cards []drawbridge.CardName) (names []string) {
	for _, name := range cards {
		names = append(names, string(name))
	}
	return names
}

// maxShownID is how much of an unknown id an error repeats, in bytes.
const maxShownID = 40
