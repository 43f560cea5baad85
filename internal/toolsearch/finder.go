// Package toolsearch lets callers look for cards instead of being shown all of them: it keeps what each class of
// callers may call ranked for questions, and makes the short list in which the cards that are pinned stand beside
// find_tools and call_tool.
//
// It promises that a question is answered from the asker's own cards only: what they may not call is not ranked,
// counted or hinted at, and costs no time. It promises that where there are cards an answer has some; that a card is
// shown with the bytes by which it is listed; and that the same cards make the same short list, whenever and wherever.
// It calls nothing and gives no right: which cards a caller has is for the deck to say.
package toolsearch

import (
	"encoding/json"
	"log/slog"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/index"
)

// A Mode says what outside clients are listed.
type Mode string

// The modes. The empty Mode is Direct.
const (
	// Direct lists all cards.
	Direct Mode = "direct"
	// Search lists the pinned cards, find_tools and call_tool.
	Search Mode = "search"
	// Auto is Search for a caller whose cards have more tokens than SearchAbove, those aside that are pinned, and else
	// Direct.
	Auto Mode = "auto"
)

// Options say how cards are found. The zero value lists all of them, and finds by words.
type Options struct {
	Mode Mode
	// Disabled has nothing found: whatever the mode, all cards are listed.
	Disabled bool
	// TopK is the most cards that a question brings; 0 is DefaultTopK, below 0 any number.
	TopK int
	// MinRelativeScore leaves out cards whose score is under this share of the best one's; 0 is DefaultRelative, below
	// 0 none.
	MinRelativeScore float64
	// AlwaysListed are globs over the names of cards that are always listed.
	AlwaysListed []string
	// SearchAbove is how many tokens the definitions may have that Search would not list before Auto searches; 0 is
	// DefaultSearchAbove.
	SearchAbove int
	// Index says what an index ranks by besides words.
	Index index.Options
	// DescribeSchemas has models of our own told in a description what a card answers, SchemaHint in how many bytes; 0
	// is DefaultSchemaHint.
	DescribeSchemas bool
	MaxSchemaHint   int
	// Logger is told of providers whose models make nothing of schemas; nil is silence.
	Logger *slog.Logger
}

// What the zero values of Options mean.
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

// A Finder finds cards. It may be used from several goroutines.
type Finder struct {
	options Options

	// mu guards what follows.
	mu sync.Mutex
	// classes are those that asked last, the last one at the end.
	classes []*callerClass
	// searching are the classes whose list Auto has made short.
	searching map[string]bool
	// warned are providers that were warned of.
	warned map[string]bool
	docs   documentCache
}

// A callerClass is callers who may call the same cards.
type callerClass struct {
	key   string
	index *classIndex
	view  *CardView
}

// ClassKey names the class of a caller, who is in that one to the guards: callers of one class may call the same cards.
func ClassKey(caller drawbridge.Caller, guards string) string {
	parts := make([]string, 0, len(caller.Scopes)+2)
	for _, scope := range caller.Scopes {
		parts = append(parts, string(scope))
	}
	slices.Sort(parts)
	return strings.Join(append(parts, caller.Kind.String(), guards), "\x00")
}

// New makes a finder.
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
	return &Finder{options: o, searching: map[string]bool{}, warned: map[string]bool{}}
}

// MayShorten says whether any list may be a short one: then the names of the two cards are taken.
func (f *Finder) MayShorten() bool { return f.options.Mode == Search || f.options.Mode == Auto }

// ServesCaller says whether find_tools and call_tool are there for the caller.
func (f *Finder) ServesCaller(caller drawbridge.Caller) bool {
	return caller.Kind != drawbridge.Nobody && (f.MayShorten() || caller.Kind == drawbridge.Agent &&
		!f.options.Disabled)
}

// View gives the cards of a class of callers, which have that version; specs gives them in the order they are listed,
// and is called where the view is not there yet. Of one class there is one view at a time: the newer takes the index
// of the older one over, so that only what is different is read anew.
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

// newView makes the view of a class. The caller has locked mu.
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

// usesShortList decides whether a class is shown a short list, by the tokens that would not be in it. One that has it
// keeps it until they are well below the bound, so that a list does not go to and fro. The caller has locked mu.
func (f *Finder) usesShortList(key string, tokens int) bool {
	if f.options.Mode != Auto {
		return f.options.Mode == Search
	}
	bound := f.options.SearchAbove
	if f.searching[key] {
		bound -= bound / 5
	}
	if tokens <= bound {
		delete(f.searching, key)
		return false
	}
	if len(f.searching) >= maxModes {
		clear(f.searching)
	}
	f.searching[key] = true
	return true
}

// isPinned says whether a card is in a short list too. A card that no model is to be shown is: clients call it for its
// page, and it costs no tokens.
func (f *Finder) isPinned(s drawbridge.Spec) bool {
	return s.AppOnly || slices.ContainsFunc(f.options.AlwaysListed, func(glob string) bool {
		ok, err := path.Match(glob, string(s.Name))
		return ok && err == nil
	})
}

// A CardView is what one class of callers may call at one moment. What it has does not change. It may be used from
// several goroutines.
type CardView struct {
	finder  *Finder
	version uint64
	// specs are the cards in the order they are listed, places where which stands.
	specs   []drawbridge.Spec
	places  map[string]int
	tokens  int
	isShort bool
	index   *classIndex

	once sync.Once
	list []json.RawMessage

	// mu guards what follows.
	mu        sync.Mutex
	turnCache turnCache
}

// Tokens is about how many tokens the definitions of all cards have for a model.
func (v *CardView) Tokens() int { return v.tokens }

// IsShort says whether the callers are shown the short list.
func (v *CardView) IsShort() bool { return v.isShort }

// ShortList gives the short list: the cards that are pinned, in their order, and then find_tools and call_tool.
// Neither the slice nor its bytes may be changed.
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

// isModelVisible says whether a model may be shown a card.
func isModelVisible(s drawbridge.Spec) bool { return !s.AppOnly }
