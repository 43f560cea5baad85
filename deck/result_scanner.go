package deck

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
)

// Limits of the queue of a [ResultScanner]. One server may use at most half of each limit, so that it cannot prevent
// the examination of other servers' results.
const (
	maxWaitingResults = 1024
	maxWaitingBytes   = 32 << 20
)

const (
	// scanDelay is the time that the scanner waits after a result is added to the empty queue. Results that arrive in
	// this time are examined together, so a series of calls wakes the scanner only once.
	scanDelay = 20 * time.Millisecond
	// maxScanBatch is the number of examined results after which findings are stored, even if more results are in the
	// queue.
	maxScanBatch = 256
	// countInterval is the longest time for which counts stay in memory if no result matched a rule. After a match they
	// are stored at once.
	countInterval = 10 * time.Second
	// recordTimeout is the maximum time to store findings. The end of the scanner's context does not interrupt storing.
	recordTimeout = 5 * time.Second
)

// A Finder returns the rules that match a text, and an excerpt of the first match.
type Finder func(text string) (excerpt string, rules []string)

// A FlaggedResult is a result that was sent to its caller and matched rules.
type FlaggedResult struct {
	// CallID identifies the call in the audit log. It is empty if there is no audit log.
	CallID string
	// Principal is the caller, Card the called name, and Method the MCP method. Tool is the name that the server uses.
	Principal, Card, Tool, Method string
	// Rules are the rules that the result matched. Excerpt is an excerpt of the first match, in printable form.
	Rules   []string
	Excerpt string
	// Recorded reports whether the audit log already contains these rules. That is the case if they also matched when
	// the result was marked.
	Recorded bool
}

// ScanCounts counts the results of one server that were submitted to a [ResultScanner].
type ScanCounts struct {
	// Scanned is the number of examined results. Flagged is the number of examined results that matched rules.
	Scanned, Flagged int
	// Skipped is the number of results that were not examined, because the queue was full or the process ended.
	Skipped int
}

// A ScanRecorder stores the findings of a [ResultScanner] for a person to read.
type ScanRecorder interface {
	// RecordScans stores the flagged results of a server, and adds counts to the stored counts of the server.
	RecordScans(ctx context.Context, server drawbridge.ServerID, counts ScanCounts, flagged []FlaggedResult) error
}

// A ResultScanner examines results after they were sent to their callers. It does not change or delay results. Results
// wait in a queue of limited size; results that do not fit are counted as skipped and not examined. It is safe for
// concurrent use. A nil ResultScanner examines nothing.
type ResultScanner struct {
	find     Finder
	recorder ScanRecorder
	log      *slog.Logger
	// wake receives an element when a result is added to the empty queue.
	wake chan struct{}

	// mu guards the queue and the counters.
	mu     sync.Mutex
	queue  []waitingResult
	bytes  int
	loads  map[drawbridge.ServerID]*serverLoad
	closed bool

	// scanning is locked while results are examined and stored. It guards clean and flagged. clean contains the hashes
	// of results that matched no rule, by server. flagged contains the flagged results that are not stored yet.
	scanning sync.Mutex
	clean    seenTexts
	flagged  map[drawbridge.ServerID][]FlaggedResult
}

// A waitingResult is a result in the queue.
type waitingResult struct {
	server drawbridge.ServerID
	about  FlaggedResult
	result json.RawMessage
	// isError reports whether result is an error object. known are the names of the rules that the audit log already
	// contains for this result.
	isError bool
	known   []string
}

// A serverLoad contains the number and the total size of one server's results in the queue, and its counts that are not
// stored yet.
type serverLoad struct {
	results, bytes int
	counts         ScanCounts
}

// NewResultScanner returns a scanner. It logs an error if a result cannot be examined or stored.
func NewResultScanner(find Finder, recorder ScanRecorder, log *slog.Logger) *ResultScanner {
	return &ResultScanner{find: find, recorder: recorder, log: log, wake: make(chan struct{}, 1),
		loads: map[drawbridge.ServerID]*serverLoad{}, flagged: map[drawbridge.ServerID][]FlaggedResult{}}
}

// submit adds a result to the queue, or counts it as skipped if the queue is full. The bytes of the result must not
// change afterwards.
func (s *ResultScanner) submit(w waitingResult) {
	if s == nil {
		return
	}
	size := len(w.result)
	s.mu.Lock()
	load := s.loadOf(w.server)
	full := len(s.queue) >= maxWaitingResults || load.results >= maxWaitingResults/2 ||
		s.bytes+size > maxWaitingBytes || load.bytes+size > maxWaitingBytes/2
	if s.closed || full {
		load.counts.Skipped++
		s.mu.Unlock()
		return
	}
	s.queue = append(s.queue, w)
	s.bytes += size
	load.results++
	load.bytes += size
	first := len(s.queue) == 1
	s.mu.Unlock()
	if first {
		select {
		case s.wake <- struct{}{}:
		default:
		}
	}
}

// loadOf returns the serverLoad of a server, and creates it if necessary. The caller must have locked mu.
func (s *ResultScanner) loadOf(server drawbridge.ServerID) *serverLoad {
	load := s.loads[server]
	if load == nil {
		load = &serverLoad{}
		s.loads[server] = load
	}
	return load
}

// next removes the first result from the queue and returns it. ok is false if the queue is empty.
func (s *ResultScanner) next() (w waitingResult, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.queue) == 0 {
		s.queue = nil
		return w, false
	}
	w, s.queue[0] = s.queue[0], waitingResult{}
	s.queue = s.queue[1:]
	load := s.loadOf(w.server)
	s.bytes -= len(w.result)
	load.results--
	load.bytes -= len(w.result)
	return w, true
}

// Run examines results until ctx ends, and then returns nil. Call Close after Run to examine the remaining results.
func (s *ResultScanner) Run(ctx context.Context) error {
	var counted <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-counted:
			counted = nil
			s.recordScans(ctx)
			continue
		case <-s.wake:
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(scanDelay):
		}
		s.scanWaiting(ctx)
		if counted == nil {
			counted = time.After(countInterval)
		}
	}
}

// Close examines the results in the queue until ctx ends, counts the rest as skipped, and stores all findings. Results
// submitted after Close are counted as skipped. Close may be called more than once.
func (s *ResultScanner) Close(ctx context.Context) error {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.scanWaiting(ctx)
	for w, ok := s.next(); ok; w, ok = s.next() {
		s.count(w.server, ScanCounts{Skipped: 1})
	}
	return s.recordScans(ctx)
}

// scanWaiting examines the results in the queue until ctx ends, and stores the findings.
func (s *ResultScanner) scanWaiting(ctx context.Context) {
	for n := 1; ctx.Err() == nil; n++ {
		w, ok := s.next()
		if ok {
			s.scan(w)
		}
		if !ok || n%maxScanBatch == 0 {
			s.recordFindings(ctx)
		}
		if !ok {
			return
		}
	}
}

// scan examines one result and counts it. A result that matched a rule is added to flagged. A result whose hash is in
// clean is not examined again.
func (s *ResultScanner) scan(w waitingResult) {
	s.scanning.Lock()
	defer s.scanning.Unlock()
	defer func() {
		if p := recover(); p != nil { // text of a server must not end the process
			s.log.Error("a result could not be examined", "server", w.server, "card", w.about.Card)
			s.count(w.server, ScanCounts{Skipped: 1})
		}
	}()
	counts := ScanCounts{Scanned: 1}
	seen, hash := s.clean.forPrincipal(string(w.server)), w.hash()
	if seen == nil || !seen.has(hash) {
		if flagged := w.about; s.examine(w, &flagged) {
			counts.Flagged = 1
			s.flagged[w.server] = append(s.flagged[w.server], flagged)
		} else if seen != nil {
			seen.add(hash)
		}
	}
	s.count(w.server, counts)
}

// examine examines one result and reports whether it matched a rule. It sets Rules, Excerpt and Recorded of to. It
// examines the same texts that are examined before a result is withheld.
func (s *ResultScanner) examine(w waitingResult, to *FlaggedResult) bool {
	f := newMarker("", w.server, w.about.Tool, func(text string) (string, []string) {
		excerpt, rules := s.find(text)
		if to.Excerpt == "" && len(rules) > 0 {
			to.Excerpt = excerpt
		}
		return text, rules
	})
	if w.isError {
		f.inspectTexts(w.result)
	} else {
		f.markResult(w.about.Method, w.result)
		f.inspectUnmarked(w.about.Method, w.result)
	}
	to.Rules = f.met
	to.Recorded = !slices.ContainsFunc(f.met, func(rule string) bool { return !slices.Contains(w.known, rule) })
	return len(f.met) > 0
}

// hash returns a hash of the result and of the properties on which its examination depends: the method, and whether it
// is an error or a page.
func (w waitingResult) hash() (sum textHash) {
	h := sha256.New()
	kind := w.about.Method
	if w.isError {
		kind = "error"
	}
	if newMarker("", "", w.about.Tool, nil).isAppPage {
		kind += " page"
	}
	h.Write(append([]byte(kind), 0))
	h.Write(w.result)
	h.Sum(sum[:0])
	return sum
}

// count adds n to the counts of a server.
func (s *ResultScanner) count(server drawbridge.ServerID, n ScanCounts) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := &s.loadOf(server).counts
	c.Scanned += n.Scanned
	c.Flagged += n.Flagged
	c.Skipped += n.Skipped
}

// recordFindings stores all counts and flagged results, if there is at least one flagged result.
func (s *ResultScanner) recordFindings(ctx context.Context) {
	s.scanning.Lock()
	found := len(s.flagged) > 0
	s.scanning.Unlock()
	if found {
		_ = s.recordScans(ctx) // recordScans logs the error
	}
}

// recordScans stores the counts and the flagged results of all servers. If they cannot be stored, it logs an error and
// discards them, so that a full disk does not also fill the memory.
func (s *ResultScanner) recordScans(ctx context.Context) error {
	s.scanning.Lock()
	defer s.scanning.Unlock()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTimeout)
	defer cancel()
	flagged := s.flagged
	s.flagged = map[drawbridge.ServerID][]FlaggedResult{}
	var errs []error
	for server, counts := range s.takeCounts() {
		if err := s.recorder.RecordScans(ctx, server, counts, flagged[server]); err != nil {
			s.log.Error("record the examined results of a server", "server", server, "flagged", counts.Flagged,
				"skipped", counts.Skipped, "err", err)
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// takeCounts returns the counts that are not stored yet and resets them. It also removes the serverLoad of each server
// that has no result in the queue.
func (s *ResultScanner) takeCounts() map[drawbridge.ServerID]ScanCounts {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := map[drawbridge.ServerID]ScanCounts{}
	for server, load := range s.loads {
		if load.counts != (ScanCounts{}) {
			all[server] = load.counts
			load.counts = ScanCounts{}
		}
		if load.results == 0 {
			delete(s.loads, server)
		}
	}
	return all
}
