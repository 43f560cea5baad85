package agent

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"sync"

	"github.com/drawbridge-mcp/drawbridge"
)

const (
	// warnRepeats is the number of equal calls with equal results in a row after which the model is told so, and
	// maxRepeats the number after which the run ends.
	warnRepeats = 3
	maxRepeats  = 5
)

// A loopBreaker counts in how many turns in a row the same call had the same result.
type loopBreaker struct {
	// mu guards the fields below: for the last turn and for this one, the repeats of each call.
	mu         sync.Mutex
	last, turn map[[sha256.Size]byte]repeats
}

// repeats are the results of one call in turns that follow each other.
type repeats struct {
	result [sha256.Size]byte
	count  int
}

// count adds a call of this turn with its result, and returns in how many turns in a row it had this result.
func (l *loopBreaker) count(call drawbridge.ToolCall, result string) int {
	key := sha256.Sum256([]byte(string(call.Name) + "\x00" + string(call.Arguments)))
	r := repeats{result: sha256.Sum256([]byte(withoutWords(result))), count: 1}
	l.mu.Lock()
	defer l.mu.Unlock()
	if before, ok := l.last[key]; ok && before.result == r.result {
		r.count = before.count + 1
	}
	if l.turn == nil {
		l.turn = map[[sha256.Size]byte]repeats{}
	}
	l.turn[key] = r
	return r.count
}

// withoutWords returns a text without the random words of the fences that tools have put around it: they differ each
// time.
func withoutWords(text string) string {
	var b strings.Builder
	for i, part := range strings.Split(text, fencePrefix) {
		if i > 0 {
			b.WriteString(fencePrefix)
			if word, after, ok := strings.Cut(part, "::"); ok && !strings.ContainsAny(word, " \n]") {
				part = "::" + after
			}
		}
		b.WriteString(part)
	}
	return b.String()
}

// endTurn ends the turn. It reports whether each of its calls was repeated too often.
func (l *loopBreaker) endTurn() (looping bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	looping = len(l.turn) > 0
	for _, r := range l.turn {
		looping = looping && r.count >= maxRepeats
	}
	l.last, l.turn = l.turn, nil
	return looping
}

// reset forgets all calls: a person said something new.
func (l *loopBreaker) reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last, l.turn = nil, nil
}

// repeatNotice is what a model is told in the result of a repeated call.
func repeatNotice(count int) string {
	return fmt.Sprintf("\n\n[This call had the same result %d times in a row. Repeating it will not help: "+
		"change it, do something else, or end your answer. The run ends after %d.]", count, maxRepeats)
}
