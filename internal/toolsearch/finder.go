// Package toolsearch lets callers search for tools instead of listing all of them. It keeps an index for each class of
// callers, and makes the short list: the pinned tools, find_tools and call_tool.
//
// A search covers only the tools that its caller may call; others are not ranked, counted or hinted at, and cost no
// time. If there are tools, a search returns some. A tool is shown with its listed bytes. The same tools make the same
// short list, in every process. The package calls no tool and grants no right: the deck decides which tools a caller
// has.
package toolsearch

import (
	"encoding/json"
	"log/slog"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/index"
)

// A Mode selects the list of external clients.
type Mode string

// The modes. The empty Mode is Direct.
const (
	// Direct lists all tools.
	Direct Mode = "direct"
	// Search lists the pinned tools, find_tools and call_tool.
	Search Mode = "search"
	// Auto is Search if the unpinned tools have more tokens than SearchAbove, and else Direct.
	Auto Mode = "auto"
)

// Options configure the search. The zero value lists all tools and searches by words.
type Options struct {
	Mode Mode
	// Disabled turns searching off: all tools are listed in every mode.
	Disabled bool
	// TopK bounds the tools found by a query; 0 is DefaultTopK, and a negative value means no limit.
	TopK int
	// MinRelativeScore drops tools whose score is below this share of the best; 0 is DefaultRelative, and a negative
	// value drops none.
	MinRelativeScore float64
	// AlwaysListed are globs of the names of tools that are always listed.
	AlwaysListed []string
	// SearchAbove is the number of tokens of unpinned definitions above which Auto searches; 0 is DefaultSearchAbove.
	SearchAbove int
	// Index configures the ranking besides words.
	Index index.Options
	// DescribeSchemas adds output schemas to the descriptions for our own models, in at most SchemaHint bytes; 0 is
	// DefaultSchemaHint.
	DescribeSchemas bool
	MaxSchemaHint   int
	// Logger is told about providers whose models ignore schemas; nil is silent.
	Logger *slog.Logger
}

// The defaults of Options.
const (
	DefaultTopK        = 20
	DefaultRelative    = 0.25
	DefaultSearchAbove = 8000
	DefaultSchemaHint  = 1024
)

// maxClasses is how many classes of callers have an index at a time, maxModes for how many it is remembered that they
// search.
const (
	maxClasses = 8
	maxModes   = 1024
)

// A Finder searches tools. It is safe for concurrent use.
type Finder struct {
	options Options

	// mu guards the fields below.
	mu sync.Mutex
	// classes are the most recent classes, the last one at the end.
	classes []*callerClass
	// searching are the classes with a short list in the mode Auto.
	searching *simplelru.LRU[string, struct{}]
	// warned are the providers that a warning was logged for.
	warned map[string]bool
	docs   documentCache
}

// A callerClass is a set of callers who may call the same tools.
type callerClass struct {
	key   string
	index *classIndex
	view  *CardView
}

// ClassKey returns the key of a caller's class; guards is the class of the caller for the guards. Callers of one class
// may call the same tools.
func ClassKey(caller drawbridge.Caller, guards string) string {
	parts := make([]string, 0, len(caller.Scopes)+2)
	for _, scope := range caller.Scopes {
		parts = append(parts, string(scope))
	}
	slices.Sort(parts)
	return strings.Join(append(parts, caller.Kind.String(), guards), "\x00")
}

// New returns a finder.
func New(o Options) *Finder {
	if o.TopK == 0 {
		o.TopK = DefaultTopK
	}
	if o.MinRelativeScore == 0 {
		o.MinRelativeScore = DefaultRelative
	}
	if o.SearchAbove == 0 {
		o.SearchAbove = DefaultSearchAbove
	}
	if o.MaxSchemaHint == 0 {
		o.MaxSchemaHint = DefaultSchemaHint
	}
	if o.Disabled {
		o.Mode = Direct
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	searching, _ := simplelru.NewLRU[string, struct{}](maxModes, nil) // the error is for sizes below 1
	return &Finder{options: o, searching: searching, warned: map[string]bool{}}
}

// MayShorten reports whether any list may be a short one, so that the names of the search tools are taken.
func (f *Finder) MayShorten() bool { return f.options.Mode == Search || f.options.Mode == Auto }

// ServesCaller reports whether the caller has find_tools and call_tool.
func (f *Finder) ServesCaller(caller drawbridge.Caller) bool {
	return caller.Kind != drawbridge.Nobody && (f.MayShorten() || caller.Kind == drawbridge.Agent &&
		!f.options.Disabled)
}

// View returns the tools of a class of callers at that version. For a new view it calls specs, which returns them in
// listed order. A class has one view at a time: a newer one takes over the index, so that only changed tools are
// indexed again.
func (f *Finder) View(key string, version uint64, specs func() []drawbridge.Spec) *CardView {
	f.mu.Lock()
	defer f.mu.Unlock()
	i := slices.IndexFunc(f.classes, func(c *callerClass) bool { return c.key == key })
	var c *callerClass
	if i >= 0 {
		c = f.classes[i]
		f.classes = append(slices.Delete(f.classes, i, i+1), c)
	} else {
		c = &callerClass{key: key, index: newClassIndex(f.options.Index, &f.docs)}
		if f.classes = append(f.classes, c); len(f.classes) > maxClasses {
			f.classes = slices.Delete(f.classes, 0, 1)
		}
	}
	if c.view == nil || c.view.version != version {
		c.view = f.newView(c, version, specs())
	}
	return c.view
}

// newView makes the view of a class. The caller holds mu.
func (f *Finder) newView(c *callerClass, version uint64, specs []drawbridge.Spec) *CardView {
	v := &CardView{finder: f, version: version, specs: specs, index: c.index, places: make(map[string]int, len(specs))}
	hidden := 0
	for i, s := range specs {
		tokens := EstimateTokens(s.Definition)
		v.places[string(s.Name)] = i
		v.tokens += tokens
		if !f.isPinned(s) {
			hidden += tokens
		}
	}
	v.isShort = f.usesShortList(c.key, hidden)
	return v
}

// usesShortList decides whether a class gets a short list, by the tokens outside it. A class keeps its short list until
// they are well below the limit, so that the list does not alternate. The caller holds mu.
func (f *Finder) usesShortList(key string, tokens int) bool {
	if f.options.Mode != Auto {
		return f.options.Mode == Search
	}
	bound := f.options.SearchAbove
	if f.searching.Contains(key) {
		bound -= bound / 5
	}
	if tokens <= bound {
		f.searching.Remove(key)
		return false
	}
	f.searching.Add(key, struct{}{})
	return true
}

// isPinned reports whether a tool is in a short list too. That includes tools that are hidden from models: clients call
// them for their page, and they cost no tokens.
func (f *Finder) isPinned(s drawbridge.Spec) bool {
	return s.AppOnly || slices.ContainsFunc(f.options.AlwaysListed, func(glob string) bool {
		ok, err := path.Match(glob, string(s.Name))
		return ok && err == nil
	})
}

// A CardView is the set of tools that one class of callers may call at one moment. It is immutable and safe for
// concurrent use.
type CardView struct {
	finder  *Finder
	version uint64
	// specs are the tools in listed order, and places their positions.
	specs   []drawbridge.Spec
	places  map[string]int
	tokens  int
	isShort bool
	index   *classIndex

	once sync.Once
	list []json.RawMessage

	// mu guards the fields below.
	mu        sync.Mutex
	turnCache turnCache
}

// Tokens estimates the tokens of all definitions for a model.
func (v *CardView) Tokens() int { return v.tokens }

// IsShort reports whether the callers get the short list.
func (v *CardView) IsShort() bool { return v.isShort }

// ShortList returns the pinned tools in their order, then find_tools and call_tool. Neither the slice nor its bytes may
// be changed.
func (v *CardView) ShortList() []json.RawMessage {
	v.once.Do(func() {
		for _, s := range v.specs {
			if v.finder.isPinned(s) {
				v.list = append(v.list, s.Definition)
			}
		}
		v.list = append(v.list, v.findToolsDefinition(), v.callToolDefinition())
	})
	return v.list
}

// isModelVisible reports whether a model may be shown a tool.
func isModelVisible(s drawbridge.Spec) bool { return !s.AppOnly }
