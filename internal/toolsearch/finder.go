// Package toolsearch lets callers search for tools instead of listing all of them. Callers that may call the same
// tools form a class. For each class, the package has an index and the short list: the pinned tools, find_tools and
// call_tool. Pinned tools are always listed.
//
// A search covers only the tools that its caller may call. Other tools are not ranked, counted or mentioned, and do
// not make the search slower. If the caller has tools that models may see, a search returns at least one tool. The
// definition of a found tool has the same bytes as in the full list. The same tools have the same short list in every
// process. The package calls no tools and grants no rights: package deck determines the tools of a caller.
//
// The package also learns the output types of tools from their results, for tools whose definition has no output
// schema. What it learns has types and names of members, and no values.
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

// A Mode determines whether external clients get the list of all tools or the short list.
type Mode string

// The modes. The empty Mode means Direct.
const (
	// Direct lists all tools.
	Direct Mode = "direct"
	// Search lists the pinned tools, find_tools and call_tool.
	Search Mode = "search"
	// Auto is like Search if the definitions of the tools that are not pinned have more than SearchAbove tokens.
	// Otherwise it is like Direct.
	Auto Mode = "auto"
	// Code lists the pinned tools, search_tools, describe_tools and run_python, whose scripts call the other tools.
	Code Mode = "code"
)

// Options are the options of a Finder. With the zero value, all tools are listed, and searches use words and the
// built-in encoder (see package index).
type Options struct {
	Mode Mode
	// Disabled disables find_tools and call_tool: all tools are listed in every mode.
	Disabled bool
	// TopK is the maximum number of tools that a query finds; 0 means DefaultTopK, and a negative value means no
	// limit.
	TopK int
	// MinRelativeScore is the minimum score of a found tool, as a share of the best score. 0 means DefaultRelative,
	// and a negative value means no minimum.
	MinRelativeScore float64
	// AlwaysListed contains glob patterns. Tools with matching names are pinned: they are always listed.
	AlwaysListed []string
	// ListsAll selects external clients that get the list of all tools in every mode; nil selects none.
	ListsAll func(drawbridge.Caller) bool
	// SearchAbove is the limit for the mode Auto. If the definitions of the tools that are not pinned have more
	// tokens, callers get the short list. 0 means DefaultSearchAbove.
	SearchAbove int
	// Index contains the options of the index.
	Index index.Options
	// DescribeSchemas specifies that the output schema of each tool is added to its description, for models that
	// Drawbridge runs. MaxSchemaHint is the maximum length of the added schema in bytes; 0 means DefaultSchemaHint.
	DescribeSchemas bool
	MaxSchemaHint   int
	// Logger receives a warning if DescribeSchemas is set and the models of a provider ignore schemas in
	// descriptions. If Logger is nil, nothing is logged.
	Logger *slog.Logger
}

// The defaults of Options.
const (
	DefaultTopK        = 20
	DefaultRelative    = 0.25
	DefaultSearchAbove = 8000
	DefaultSchemaHint  = 1024
)

// maxClasses is the maximum number of classes of callers that have an index at the same time. maxModes is the maximum
// number of classes in Finder.searching; beyond it, the class that was used least recently is removed.
const (
	maxClasses = 8
	maxModes   = 1024
)

// A Finder provides the search for tools. It is safe for concurrent use.
type Finder struct {
	options Options

	// mu guards the fields below.
	mu sync.Mutex
	// classes contains the most recently used classes, the last used one at the end.
	classes []*callerClass
	// searching contains the keys of the classes that have a short list in the mode Auto.
	searching *simplelru.LRU[string, struct{}]
	// warned contains the providers for which a warning was logged.
	warned map[string]bool
	docs   documentCache
}

// A callerClass is a set of callers that may call the same tools. key is the result of ClassKey for these callers.
type callerClass struct {
	key   string
	index *classIndex
	view  *CardView
}

// ClassKey returns a key of a caller. Callers with the same key may call the same tools. The argument guards must be
// a key with the same property for the guards: callers with equal keys are treated equally.
func ClassKey(caller drawbridge.Caller, guards string) string {
	parts := make([]string, 0, len(caller.Scopes)+2)
	for _, scope := range caller.Scopes {
		parts = append(parts, string(scope))
	}
	slices.Sort(parts)
	return strings.Join(append(parts, caller.Kind.String(), caller.OriginKind().String(), guards), "\x00")
}

// New returns a Finder with the given options.
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
	searching, _ := simplelru.NewLRU[string, struct{}](maxModes, nil) // NewLRU returns an error only for sizes below 1
	return &Finder{options: o, searching: searching, warned: map[string]bool{}}
}

// MayShorten reports whether the mode is Search or Auto, so that callers may get the short list. In these modes the
// names find_tools and call_tool are reserved for the search tools.
func (f *Finder) MayShorten() bool { return f.options.Mode != "" && f.options.Mode != Direct }

// MayShortenFor reports whether the caller is an external client that may get the short list.
func (f *Finder) MayShortenFor(caller drawbridge.Caller) bool {
	return caller.Kind == drawbridge.External && f.MayShorten() &&
		(f.options.ListsAll == nil || !f.options.ListsAll(caller))
}

// DependsOnClient reports whether clients with the same rights may get different lists.
func (f *Finder) DependsOnClient() bool { return f.options.ListsAll != nil }

// ServesCaller reports whether the caller can call find_tools and call_tool. In the mode Direct, only agents can,
// unless Options.Disabled is set.
func (f *Finder) ServesCaller(caller drawbridge.Caller) bool {
	return caller.Kind != drawbridge.Nobody && caller.Kind != drawbridge.Sandbox && (f.MayShorten() || caller.Kind == drawbridge.Agent &&
		!f.options.Disabled)
}

// View returns the view of the class with the given key. version is the version of the class's list of tools. For a
// new version, View calls specs, which returns the tools in listed order, and creates a new view. The new view uses
// the index of the previous view, so only changed tools are indexed again.
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

// newView creates the view of a class for a version of its list of tools. The caller must hold f.mu.
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

// usesShortList reports whether a class gets the short list. tokens is the number of tokens in the definitions of the
// tools that are not pinned. In the mode Auto, a class gets the short list if tokens exceeds SearchAbove, and keeps
// it until tokens is a fifth below that limit. So small changes do not make the list alternate. The caller must hold
// f.mu.
func (f *Finder) usesShortList(key string, tokens int) bool {
	if f.options.Mode != Auto {
		return f.options.Mode == Search || f.options.Mode == Code
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

// isPinned reports whether a tool is always listed by tools/list, even if the other tools must be searched for. This
// includes tools that are hidden from models: clients call them for their user interface, and they cost no tokens. In
// the mode Code it includes tools with a page, because no page is shown for a call by a script.
func (f *Finder) isPinned(s drawbridge.Spec) bool {
	inCode := f.options.Mode == Code && (s.HasPage || s.Server == "" && s.Name == RunPythonName)
	return inCode || s.AppOnly || slices.ContainsFunc(f.options.AlwaysListed, func(glob string) bool {
		ok, err := path.Match(glob, string(s.Name))
		return ok && err == nil
	})
}

// A CardView contains the tools that one class of callers may call, as of one version of the class's list of tools.
// It is immutable and safe for concurrent use.
type CardView struct {
	finder  *Finder
	version uint64
	// specs contains the tools in listed order. places contains the index of each tool in specs, by name.
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

// Tokens returns the estimated number of tokens of all definitions.
func (v *CardView) Tokens() int { return v.tokens }

// IsShort reports whether the callers of the class get the short list instead of all tools.
func (v *CardView) IsShort() bool { return v.isShort }

// ShortList returns the definitions of the pinned tools in their order, and then find_tools and call_tool. Callers
// must not modify the result.
func (v *CardView) ShortList() []json.RawMessage {
	v.once.Do(func() {
		for _, s := range v.specs {
			if v.finder.isPinned(s) && s.Name != RunPythonName {
				v.list = append(v.list, s.Definition)
			}
		}
		if v.finder.options.Mode == Code {
			v.list = append(v.list, searchToolsDefinition(), describeToolsDefinition())
			if i, ok := v.places[RunPythonName]; ok {
				v.list = append(v.list, v.runPythonDefinition(v.specs[i].Definition))
			}
			return
		}
		v.list = append(v.list, v.findToolsDefinition(), v.callToolDefinition())
	})
	return v.list
}

// isModelVisible reports whether a tool may be shown to models. The other tools are only for the user interface of
// clients.
func isModelVisible(s drawbridge.Spec) bool { return !s.AppOnly }
