package index

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// DefaultDeadline is what a question waits for its vector where nobody says otherwise.
const DefaultDeadline = 250 * time.Millisecond

const (
	// defaultBatch is how many texts are embedded at once.
	defaultBatch = 32
	// maxKnown is how many texts a library knows: of more it forgets those that were not searched for the longest.
	maxKnown = 100_000
	// leastCovered is the least share of what is searched that must have vectors. It is less than all, since one text that the
	// model refuses would else turn the model off for all others; and not much less, since what has no vector is ranked by its
	// words alone, among others that are ranked by both.
	leastCovered = 0.9
)

// A Library ranks by the vectors of a model that runs elsewhere. Documents are embedded in the background, each text once; a
// question is embedded when it is asked, within a deadline. When the model is slow, or away, or another than it was, questions
// have no answer here, soon: so that they are answered by words. Its methods may be called from several goroutines.
type Library struct {
	embedder Embedder
	o        LibraryOptions
	// wake has Run look at once.
	wake chan struct{}
	// working is held by who embeds documents.
	working sync.Mutex
	rows    *rows
	// era counts how often the vectors of questions became worthless; asked remembers those of who asks the library itself.
	era   atomic.Int64
	asked *questions

	mu sync.Mutex
	// offered are documents whose keys nobody has made yet, at most maxKnown.
	offered []Document
	known   map[Key]Document
	// fresh are keys that the keeper was not asked for, lacking those that it does not have, in the order in which they came.
	fresh, lacking []Key
	refused        map[Key]bool
	// unkept are vectors that the keeper did not take.
	unkept map[Key][]float32
	// sure says that the model is the one whose vectors are kept. alone says that nothing is kept any more.
	sure, alone bool
	// mark is the vector of the text that never changes, as the model gave it last.
	mark    []float32
	circuit circuit
	// asking and embedding are what went wrong last with questions and with documents.
	asking, embedding fault
	state             LibraryStatus
}

// A fault is what went wrong, and when; the zero value is that nothing did.
type fault struct {
	text string
	at   time.Time
}

// wrong is what went wrong now; nil is nothing.
func wrong(err error) fault {
	if err == nil {
		return fault{}
	}
	return fault{err.Error(), time.Now()}
}

var (
	_ Far    = (*Library)(nil)
	_ Parted = (*Library)(nil)
)

// LibraryOptions are what a library can do without.
type LibraryOptions struct {
	// Vectors keeps vectors; nil keeps them in memory only. Where it can, it is a Forgetter.
	Vectors Vectors
	// Remote has Vectors searched, and no vector in memory: for more texts than that has room for.
	Remote bool
	// Deadline is how long a question waits for its vector; 0 means 250 ms.
	Deadline time.Duration
	// Batch is how many texts are embedded at once; 0 means 32.
	Batch int
	// Logger is told when the model goes away, comes back, and is another than it was; nil is silence.
	Logger *slog.Logger
}

// A LibraryStatus says how a library is.
type LibraryStatus struct {
	// Model names the space, Dimension is how many numbers its vectors have; 0 is not known yet.
	Model     string `json:"model"`
	Dimension int    `json:"dimension,omitempty"`
	// Texts are all that were offered, Vectors those of them that have one, Refused those that the model does not take.
	Texts   int `json:"texts"`
	Vectors int `json:"vectors"`
	Refused int `json:"refused,omitempty"`
	// Asked are the questions whose vectors were asked for, Missed those of them that got none.
	Asked  int `json:"asked,omitempty"`
	Missed int `json:"missed,omitempty"`
	// Away is since when no question is sent, because the model does not answer; zero where they are.
	Away time.Time `json:"away,omitzero"`
	// Err is what went wrong last, without secrets, and At when; empty where it went well since.
	Err string    `json:"error,omitempty"`
	At  time.Time `json:"error_at,omitzero"`
	// Replaced counts how often the model was found to be another under the same name.
	Replaced int `json:"replaced,omitempty"`
}

// NewLibrary makes a library of the texts that Offer brings. Run has them embedded.
func NewLibrary(e Embedder, o LibraryOptions) *Library {
	if o.Deadline <= 0 {
		o.Deadline = DefaultDeadline
	}
	if o.Batch <= 0 {
		o.Batch = defaultBatch
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	l := &Library{
		embedder: e, o: o, wake: make(chan struct{}, 1), rows: newRows(),
		known: map[Key]Document{}, refused: map[Key]bool{}, unkept: map[Key][]float32{}, alone: o.Vectors == nil,
	}
	l.asked = newQuestions(&l.era)
	return l
}

// An asker is a library as one index asks it.
type asker struct {
	*Library
	asked *questions
}

// Apart implements [Parted]: the vectors of questions are remembered for each index by itself, so that how long an answer takes
// says nothing of what was asked elsewhere.
func (l *Library) Apart() Far { return asker{l, newQuestions(&l.era)} }

// Nearest is the library's.
func (a asker) Nearest(ctx context.Context, question string, most int, among []Key) ([]Near, error) {
	return a.nearest(ctx, a.asked, question, most, among)
}

// Offer notes documents that are to be searched: those that are new, or all. It is quick; what has a vector, or waits for one,
// costs nothing.
func (l *Library) Offer(docs []Document) {
	if len(docs) == 0 {
		return
	}
	l.mu.Lock()
	l.offered = append(l.offered, docs...)
	if over := len(l.offered) - maxKnown; over > 0 {
		l.offered = slices.Delete(l.offered, 0, over) // what came first is forgotten first
	}
	l.mu.Unlock()
	l.rouse()
}

func (l *Library) rouse() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// Status says how it is.
func (l *Library) Status() LibraryStatus {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.state
	s.Model, s.Away, s.Refused = l.embedder.Model(), l.circuit.open, len(l.refused)
	s.Texts = len(l.known)
	s.Vectors, s.Dimension = l.rows.size()
	last := l.embedding
	if l.asking.at.After(last.at) {
		last = l.asking
	}
	s.Err, s.At = last.text, last.at
	return s
}

var (
	errEmpty  = errors.New("there is no question")
	errNotYet = errors.New("too few of the texts have a vector yet")
	errAway   = errors.New("the model does not answer")
	errOther  = errors.New("the vector of the question has another dimension than those of the texts")
)

// Nearest gives the keys whose texts lie nearest to a question. It is over within the deadline, and asks nobody where fewer than
// nine in ten of the keys have vectors, or where the model was away when it was last asked.
func (l *Library) Nearest(ctx context.Context, question string, most int, among []Key) ([]Near, error) {
	return l.nearest(ctx, l.asked, question, most, among)
}

// nearest is Nearest for who remembers those questions.
func (l *Library) nearest(ctx context.Context, asked *questions, question string, most int, among []Key) ([]Near, error) {
	switch {
	case len(among) == 0 || most <= 0:
		return nil, nil
	case question == "":
		return nil, errEmpty
	case !l.rows.cover(among):
		return nil, errNotYet
	}
	within, cancel := context.WithTimeout(ctx, l.o.Deadline)
	defer cancel()
	v, err := l.vector(ctx, within, asked, question)
	if err != nil {
		return nil, err
	}
	if _, dimension := l.rows.size(); len(v) != dimension {
		l.doubt()
		return nil, errOther
	}
	if l.remote() {
		return l.o.Vectors.Nearest(within, l.embedder.Model(), v, most, among)
	}
	return l.rows.nearest(v, most, among), nil
}

// doubt has it looked at whether the model is another than it was.
func (l *Library) doubt() {
	l.mu.Lock()
	l.sure = false
	l.mu.Unlock()
	l.era.Add(1)
	l.rouse()
}
