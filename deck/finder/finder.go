// Package finder lets callers look for cards instead of being shown all of them: it keeps what each class of callers may call
// ranked for questions, and makes the short list in which the cards that are pinned stand beside find_tools and call_tool.
//
// It promises that a question is answered from the asker's own cards only: what they may not call is not ranked, counted or
// hinted at, and costs no time. It promises that where there are cards an answer has some; that a card is shown with the bytes
// by which it is listed; and that the same cards make the same short list, whenever and wherever. It calls nothing and gives no
// right: which cards a caller has is for the deck to say.
package finder

import (
	"encoding/json"
	"log/slog"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/index"
)

// A Mode says what outside clients are listed.
type Mode string

// The modes. The empty Mode is Direct.
const (
	// Direct lists all cards.
	Direct Mode = "direct"
	// Search lists the pinned cards, find_tools and call_tool.
	Search Mode = "search"
	// Auto is Search for a caller whose cards have more tokens than SearchAbove, those aside that are pinned, and else Direct.
	Auto Mode = "auto"
)

// Options say how cards are found. The zero value lists all of them, and finds by words.
type Options struct {
	Mode Mode
	// Off has nothing found: whatever the mode, all cards are listed.
	Off bool
	// TopK is the most cards that a question brings; 0 is DefaultTopK, below 0 any number.
	TopK int
	// Relative leaves out cards whose score is under this share of the best one's; 0 is DefaultRelative, below 0 none.
	Relative float64
	// Always are globs over the names of cards that are always listed.
	Always []string
	// SearchAbove is how many tokens the definitions may have that Search would not list before Auto searches; 0 is
	// DefaultSearchAbove.
	SearchAbove int
	// Index says what an index ranks by besides words.
	Index index.Options
	// TellSchemas has models of our own told in a description what a card answers, SchemaHint in how many bytes; 0 is
	// DefaultSchemaHint.
	TellSchemas bool
	SchemaHint  int
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

// maxClasses is how many classes of callers have an index at a time, maxModes for how many it is remembered that they search.
const (
	maxClasses = 8
	maxModes   = 1024
)

// A Finder finds cards. It may be used from several goroutines.
type Finder struct {
	o Options

	// mu guards what follows.
	mu sync.Mutex
	// classes are those that asked last, the last one at the end.
	classes []*class
	// searching are the classes whose list Auto has made short.
	searching map[string]bool
	// warned are providers that were warned of.
	warned map[string]bool
	docs   documents
}

// A class is callers who may call the same cards.
type class struct {
	key   string
	stock *stock
	view  *View
}

// Class names the class of a caller, who is in that one to the guards: callers of one class may call the same cards.
func Class(caller drawbridge.Caller, guards string) string {
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
	if o.Relative == 0 {
		o.Relative = DefaultRelative
	}
	if o.SearchAbove == 0 {
		o.SearchAbove = DefaultSearchAbove
	}
	if o.SchemaHint == 0 {
		o.SchemaHint = DefaultSchemaHint
	}
	if o.Off {
		o.Mode = Direct
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return &Finder{o: o, searching: map[string]bool{}, warned: map[string]bool{}}
}

// Shortens says whether any list may be a short one: then the names of the two cards are taken.
func (f *Finder) Shortens() bool { return f.o.Mode == Search || f.o.Mode == Auto }

// Serves says whether find_tools and call_tool are there for the caller.
func (f *Finder) Serves(caller drawbridge.Caller) bool {
	return caller.Kind != drawbridge.Nobody && (f.Shortens() || caller.Kind == drawbridge.Agent && !f.o.Off)
}

// View gives the cards of a class of callers, which have that version; specs gives them in the order they are listed, and is
// called where the view is not there yet. Of one class there is one view at a time: the newer takes the index of the older one
// over, so that only what is different is read anew.
func (f *Finder) View(key string, version uint64, specs func() []drawbridge.Spec) *View {
	f.mu.Lock()
	defer f.mu.Unlock()
	i := slices.IndexFunc(f.classes, func(c *class) bool { return c.key == key })
	var c *class
	if i >= 0 {
		c = f.classes[i]
		f.classes = append(slices.Delete(f.classes, i, i+1), c)
	} else {
		c = &class{key: key, stock: newStock(f.o.Index, &f.docs)}
		if f.classes = append(f.classes, c); len(f.classes) > maxClasses {
			f.classes = slices.Delete(f.classes, 0, 1)
		}
	}
	if c.view == nil || c.view.version != version {
		c.view = f.view(c, version, specs())
	}
	return c.view
}

// view makes the view of a class. The caller has locked mu.
func (f *Finder) view(c *class, version uint64, specs []drawbridge.Spec) *View {
	v := &View{f: f, version: version, specs: specs, stock: c.stock, places: make(map[string]int, len(specs))}
	hidden := 0
	for i, s := range specs {
		tokens := Tokens(s.Definition)
		v.places[string(s.Name)] = i
		v.tokens += tokens
		if !f.pinned(s) {
			hidden += tokens
		}
	}
	v.short = f.searches(c.key, hidden)
	return v
}

// searches decides whether a class is shown a short list, by the tokens that would not be in it. One that has it keeps it until
// they are well below the bound, so that a list does not go to and fro. The caller has locked mu.
func (f *Finder) searches(key string, tokens int) bool {
	if f.o.Mode != Auto {
		return f.o.Mode == Search
	}
	bound := f.o.SearchAbove
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

// pinned says whether a card is in a short list too. A card that no model is to be shown is: clients call it for its page, and
// it costs no tokens.
func (f *Finder) pinned(s drawbridge.Spec) bool {
	return s.AppOnly || slices.ContainsFunc(f.o.Always, func(glob string) bool {
		ok, err := path.Match(glob, string(s.Name))
		return ok && err == nil
	})
}

// A View is what one class of callers may call at one moment. What it has does not change. It may be used from several goroutines.
type View struct {
	f       *Finder
	version uint64
	// specs are the cards in the order they are listed, places where which stands.
	specs  []drawbridge.Spec
	places map[string]int
	tokens int
	short  bool
	stock  *stock

	once sync.Once
	list []json.RawMessage

	// mu guards what follows.
	mu    sync.Mutex
	turns turns
}

// Tokens is about how many tokens the definitions of all cards have for a model.
func (v *View) Tokens() int { return v.tokens }

// Short says whether the callers are shown the short list.
func (v *View) Short() bool { return v.short }

// List gives the short list: the cards that are pinned, in their order, and then find_tools and call_tool. Neither the slice
// nor its bytes may be changed.
func (v *View) List() []json.RawMessage {
	v.once.Do(func() {
		for _, s := range v.specs {
			if v.f.pinned(s) {
				v.list = append(v.list, s.Definition)
			}
		}
		v.list = append(v.list, v.findCard(), v.callCard())
	})
	return v.list
}

// shown says whether a model may be shown a card.
func shown(s drawbridge.Spec) bool { return !s.AppOnly }
