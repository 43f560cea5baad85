package cards

import (
	"cmp"
	"container/list"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/deck"
)

// resultLifetime is how long a kept result that is not read is stored.
const resultLifetime = 30 * time.Minute

// The limits of a [ResultStore]. The sizes are in bytes, with resultOverhead for each result.
const (
	maxOwnerResults = 64
	maxOwnerBytes   = 16 << 20
	maxStoreBytes   = 128 << 20
	resultOverhead  = 1 << 10
)

// A ResultStore stores in memory the results that scripts leave for later scripts of the same caller, see
// [resultOwner]. A result is removed when it was not used for resultLifetime, when its session ends, or when a limit
// needs its place: then the least recently used one goes, of the same owner if the owner is above its limit, and else of
// the principal that uses most of the store.
type ResultStore struct {
	// firstID returns the number of the first id of an owner.
	firstID func() int

	mu         sync.Mutex
	closed     bool
	principals map[string]*principalResults
	bytes      int
	// sweep is the timer that removes expired results. It is nil while the store is empty.
	sweep *time.Timer
}

// A resultOwner identifies who may read a result: calls of the same session with the same rights, in the same gateway.
// For callers without a session, see [deck.RunOf].
type resultOwner struct{ principal, session, rest string }

// newResultOwner returns the owner of the results of a caller.
func newResultOwner(gateway string, c drawbridge.Caller) resultOwner {
	return resultOwner{c.Principal, c.Session, fmt.Sprintf("%q %q %s", gateway, deck.RunOf(c), scriptOwner(c))}
}

// principalResults are the results of one principal, at least one. used has the most recently used result first.
type principalResults struct {
	owners map[resultOwner]*ownerResults
	used   *list.List
	bytes  int
}

// ownerResults are the results of one owner, at least one. used has the most recently used result first.
type ownerResults struct {
	byID   map[string]*storedResult
	used   *list.List
	lastID int
	bytes  int
}

// A storedResult is one result.
type storedResult struct {
	id     string
	owner  resultOwner
	text   indexedText
	origin resultOrigin
	usedAt time.Time
	// place and ownPlace are the elements in the lists of the principal and of the owner.
	place, ownPlace *list.Element
}

// A resultOrigin describes what a result may be derived from: the tools, and whether texts are among it that the caller
// gets marked as foreign.
type resultOrigin struct {
	tools   []drawbridge.CardName
	foreign bool
}

// size returns how many bytes the result counts.
func (r *storedResult) size() int {
	size := resultOverhead + len(r.text.text) + 8*len(r.text.marks)
	for _, name := range r.origin.tools {
		size += len(name)
	}
	return size
}

// NewResultStore returns an empty store. The caller must call Close.
func NewResultStore() *ResultStore {
	// Ids begin at random. So an id that a client has from before a restart of the program, or from before all results
	// expired, is not that of a new result.
	return &ResultStore{principals: map[string]*principalResults{}, firstID: func() int { return 1000 + rand.IntN(1_000_000) }}
}

// Close removes all results. Later results are not kept.
func (s *ResultStore) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	clear(s.principals)
	s.bytes = 0
	if s.sweep != nil {
		s.sweep.Stop()
	}
}

// EndSession removes the results of a session.
func (s *ResultStore) EndSession(caller drawbridge.Caller) {
	if caller.Session == "" {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.principals[caller.Principal]
	if p == nil {
		return
	}
	for owner, o := range p.owners {
		if owner.session == caller.Session {
			for _, r := range o.byID {
				s.remove(r)
			}
		}
	}
}

// keep stores a text, and returns its id and its number of characters. The id is the given one, unless that is empty. A
// result of the owner that has this id already stays as it is.
func (s *ResultStore) keep(owner resultOwner, id, text string, origin resultOrigin) (keptID string, length int,
	err error) {
	r := &storedResult{id: id, owner: owner, text: newIndexedText(text), origin: origin, usedAt: time.Now()}
	size := r.size()
	if size > maxOwnerBytes {
		return "", 0, fmt.Errorf("a result of %d bytes is too large: %d MiB are kept for a session", len(text),
			maxOwnerBytes>>20)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return "", 0, errors.New("no more results are kept: this process is ending")
	}
	if o := s.find(owner); o != nil && o.byID[id] != nil {
		return id, o.byID[id].text.length, nil
	}
	for o := s.find(owner); o != nil && (len(o.byID) >= maxOwnerResults || o.bytes+size > maxOwnerBytes); o = s.find(owner) {
		s.remove(o.used.Back().Value.(*storedResult))
	}
	for s.bytes+size > maxStoreBytes {
		s.remove(s.heaviest().used.Back().Value.(*storedResult))
	}
	s.insert(r)
	if s.sweep == nil {
		s.sweep = time.AfterFunc(resultLifetime, s.removeExpired)
	}
	return r.id, r.text.length, nil
}

// read returns a part of a result, as [sandbox.ResultKeeper] describes it, and the origin of the result. It returns false if the owner has no such result, or if mayRead returns false for its tools.
func (s *ResultStore) read(owner resultOwner, id string, at, size int, mayRead func([]drawbridge.CardName) bool) (
	text string, length int, origin resultOrigin, ok bool) {
	r := s.result(owner, id)
	if r == nil || !mayRead(r.origin.tools) {
		return "", 0, origin, false
	}
	s.mu.Lock()
	if o := s.find(owner); o != nil && o.byID[id] == r { // it may have been removed
		r.usedAt = time.Now()
		o.used.MoveToFront(r.ownPlace)
		s.principals[owner.principal].used.MoveToFront(r.place)
	}
	s.mu.Unlock()
	return r.text.part(at, size), r.text.length, r.origin, true
}

// result returns a result of an owner, or nil.
func (s *ResultStore) result(owner resultOwner, id string) *storedResult {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.find(owner)
	if o == nil || o.byID[id] == nil || time.Since(o.byID[id].usedAt) >= resultLifetime {
		return nil
	}
	return o.byID[id]
}

// find returns the results of an owner, or nil. The caller must hold the lock, as that of all methods below.
func (s *ResultStore) find(owner resultOwner) *ownerResults {
	if p := s.principals[owner.principal]; p != nil {
		return p.owners[owner]
	}
	return nil
}

// heaviest returns the principal that uses most of the store.
func (s *ResultStore) heaviest() (heaviest *principalResults) {
	for _, p := range s.principals {
		if heaviest == nil || p.bytes > heaviest.bytes {
			heaviest = p
		}
	}
	return heaviest
}

// insert adds a result, with the next id of its owner if it has none.
func (s *ResultStore) insert(r *storedResult) {
	p := s.principals[r.owner.principal]
	if p == nil {
		p = &principalResults{owners: map[resultOwner]*ownerResults{}, used: list.New()}
		s.principals[r.owner.principal] = p
	}
	o := p.owners[r.owner]
	if o == nil {
		o = &ownerResults{byID: map[string]*storedResult{}, used: list.New(), lastID: s.firstID() - 1}
		p.owners[r.owner] = o
	}
	if n, err := strconv.Atoi(strings.TrimPrefix(r.id, "r")); err == nil {
		o.lastID = max(o.lastID, n)
	}
	if r.id == "" {
		o.lastID++
		r.id = "r" + strconv.Itoa(o.lastID)
	}
	r.place, r.ownPlace = p.used.PushFront(r), o.used.PushFront(r)
	o.byID[r.id] = r
	size := r.size()
	o.bytes, p.bytes, s.bytes = o.bytes+size, p.bytes+size, s.bytes+size
}

// remove removes a result, and the owner and the principal that have no other.
func (s *ResultStore) remove(r *storedResult) {
	p := s.principals[r.owner.principal]
	o := p.owners[r.owner]
	o.used.Remove(r.ownPlace)
	p.used.Remove(r.place)
	delete(o.byID, r.id)
	size := r.size()
	o.bytes, p.bytes, s.bytes = o.bytes-size, p.bytes-size, s.bytes-size
	if len(o.byID) == 0 {
		delete(p.owners, r.owner)
	}
	if len(p.owners) == 0 {
		delete(s.principals, r.owner.principal)
	}
}

// Erase removes the results that contain one of the texts, as they are or in a JSON string.
func (s *ResultStore) Erase(texts []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var found []*storedResult
	for _, p := range s.principals {
		for e := p.used.Front(); e != nil; e = e.Next() {
			r := e.Value.(*storedResult)
			if slices.ContainsFunc(texts, func(text string) bool {
				return strings.Contains(r.text.text, text) || strings.Contains(r.text.text, strings.Trim(string(mustMarshal(text)), `"`))
			}) {
				found = append(found, r)
			}
		}
	}
	for _, r := range found {
		s.remove(r)
	}
}

// removeExpired removes the results that were not used for resultLifetime, and is called again when the next one may
// expire.
func (s *ResultStore) removeExpired() {
	s.mu.Lock()
	defer s.mu.Unlock()
	now, next := time.Now(), time.Duration(0)
	for _, p := range s.principals {
		for e := p.used.Back(); e != nil; e = p.used.Back() {
			r := e.Value.(*storedResult)
			if left := resultLifetime - now.Sub(r.usedAt); left > 0 {
				next = min(cmp.Or(next, left), left)
				break
			}
			s.remove(r)
		}
	}
	if s.sweep = nil; next > 0 && !s.closed {
		s.sweep = time.AfterFunc(max(next, time.Second), s.removeExpired)
	}
}

// An indexedText is a text whose characters are found by their number.
type indexedText struct {
	text string
	// marks are the offsets of the characters 0, markDistance, 2*markDistance and so on. length is the number of
	// characters.
	marks  []int
	length int
}

const markDistance = 1024

func newIndexedText(text string) indexedText {
	t := indexedText{text: text, marks: make([]int, 0, len(text)/markDistance+1)}
	for at := range text {
		if t.length%markDistance == 0 {
			t.marks = append(t.marks, at)
		}
		t.length++
	}
	return t
}

// part returns size characters from the character at on: fewer at the end, none beyond it.
func (t indexedText) part(at, size int) string {
	if at < 0 || size <= 0 || at >= t.length {
		return ""
	}
	return t.text[t.offset(at):t.offset(at+min(size, t.length-at))]
}

// offset returns the offset of a character; for the number after the last one, the length of the text.
func (t indexedText) offset(character int) int {
	if character >= t.length {
		return len(t.text)
	}
	at := t.marks[character/markDistance]
	for range character % markDistance {
		_, size := utf8.DecodeRuneInString(t.text[at:])
		at += size
	}
	return at
}
