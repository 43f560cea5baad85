package index

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
)

const (
	// batchTime is how long a batch may take, with all that it is tried again.
	batchTime = 2 * time.Minute
	// The first time after which a batch that went wrong is tried again, and the longest.
	firstAgain, lastAgain = time.Second, 5 * time.Minute
)

// Run has what was offered embedded, until ctx ends: what lacks a vector, in batches, one after the other. While the model is
// away it is tried again at longer and longer intervals. It returns nil.
func (l *Library) Run(ctx context.Context) error {
	pause, rest := firstAgain, time.Time{} // rest is when documents are embedded again
	for ctx.Err() == nil {
		l.mu.Lock()
		away, next := !l.circuit.open.IsZero(), l.circuit.next
		l.mu.Unlock()
		if l.working.TryLock() { // also while the model is away: what was offered is bounded by what is known
			l.takeIn()
			l.working.Unlock()
		}
		if away && !time.Now().Before(next) {
			l.look(ctx)
			continue
		}
		if !time.Now().Before(rest) {
			more, err := l.work(ctx)
			switch {
			case err != nil:
				wait := pause
				if later, ok := errors.AsType[Later](err); ok {
					wait = max(wait, min(later.RetryAfter(), lastAgain))
				}
				rest, pause = time.Now().Add(wait), min(2*pause, lastAgain)
			case more:
				pause = firstAgain
				continue
			}
		}
		if !away {
			next = time.Time{}
		}
		if rest.After(time.Now()) && (next.IsZero() || rest.Before(next)) {
			next = rest
		}
		l.sleep(ctx, next)
	}
	return nil
}

// sleep waits until something is to be done: until that time, if there is one.
func (l *Library) sleep(ctx context.Context, until time.Time) {
	var after <-chan time.Time
	if !until.IsZero() {
		timer := time.NewTimer(time.Until(until))
		defer timer.Stop()
		after = timer.C
	}
	select {
	case <-ctx.Done():
	case <-l.wake:
	case <-after:
	}
}

// Fill has all that was offered embedded now, and gives up at the first error. Told hears how many of how many texts have a
// vector, or were refused, as that goes on.
func (l *Library) Fill(ctx context.Context, told func(done, of int)) error {
	for {
		more, err := l.work(ctx)
		s := l.Status()
		told(s.Vectors+s.Refused, s.Texts)
		if err != nil || !more {
			return err
		}
	}
}

// Forget lets go of all vectors, those that are kept too, so that all is embedded anew.
func (l *Library) Forget(ctx context.Context) error {
	l.working.Lock()
	defer l.working.Unlock()
	if f, ok := l.o.Vectors.(Forgetter); ok {
		if err := f.Forget(ctx, l.embedder.Model()); err != nil {
			return fmt.Errorf("forget the vectors of %s: %w", l.embedder.Model(), err)
		}
	}
	l.begin(0)
	l.doubt()
	return nil
}

// work does the next piece of what is to be done; more says that there is more. An error has been noted.
func (l *Library) work(ctx context.Context) (more bool, err error) {
	l.working.Lock()
	defer l.working.Unlock()
	l.takeIn()
	l.mu.Lock()
	sure, fresh, unkept := l.sure, len(l.fresh), len(l.unkept)
	todo := fresh + len(l.lacking) + unkept
	idle := todo == 0 && (sure || len(l.known) == 0)
	l.mu.Unlock()
	if idle {
		return false, nil
	}
	within, cancel := context.WithTimeout(ctx, batchTime)
	defer cancel()
	switch {
	case !sure:
		err = l.recognise(within)
	case unkept > 0:
		err = l.keep(within, nil)
	case fresh > 0:
		err = l.load(within)
	default:
		err = l.embedNext(within)
	}
	if ctx.Err() != nil {
		return true, ctx.Err()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if errors.Is(err, errKeeper) && l.embedding.text == "" {
		l.o.Logger.Warn("vectors of tools are not kept", "model", l.embedder.Model(), "err", err)
	}
	l.embedding = wrong(err)
	if err != nil && !errors.Is(err, errKeeper) {
		l.failed(err, 1)
	}
	return true, err
}

// takeIn makes the keys of what was offered. It is no quick work: of a document's schema the names of parameters are read.
func (l *Library) takeIn() {
	l.mu.Lock()
	docs := l.offered
	l.offered = nil
	l.mu.Unlock()
	keys := make([]Key, len(docs))
	for i := range docs {
		keys[i] = docs[i].Key()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, key := range keys {
		if _, ok := l.known[key]; !ok {
			l.known[key] = docs[i]
			l.fresh = append(l.fresh, key)
		}
	}
	if over := len(l.known) - maxKnown; over > 0 {
		gone := l.rows.idle(l.known, over+maxKnown/10)
		for _, key := range gone {
			delete(l.known, key)
			delete(l.refused, key)
			delete(l.unkept, key)
		}
		unknown := func(key Key) bool { _, ok := l.known[key]; return !ok }
		l.fresh, l.lacking = slices.DeleteFunc(l.fresh, unknown), slices.DeleteFunc(l.lacking, unknown)
		l.rows.drop(gone)
	}
}

// begin has all texts embedded anew, into vectors of that dimension.
func (l *Library) begin(dimension int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rows.begin(dimension)
	l.era.Add(1)
	l.fresh, l.lacking = l.fresh[:0], l.lacking[:0]
	clear(l.refused)
	clear(l.unkept)
	for key := range l.known {
		l.fresh = append(l.fresh, key)
	}
	slices.SortFunc(l.fresh, func(a, b Key) int { return slices.Compare(a[:], b[:]) })
}

// embedNext embeds the next batch, but for what another process has had embedded meanwhile.
func (l *Library) embedNext(ctx context.Context) error {
	l.mu.Lock()
	batch := slices.Clone(l.lacking[:min(len(l.lacking), l.o.Batch)])
	texts := make(map[Key]string, len(batch))
	for _, key := range batch {
		doc := l.known[key]
		texts[key] = doc.Text()
	}
	l.mu.Unlock()
	found, err := l.found(ctx, batch)
	if err != nil {
		return err
	}
	wanted := slices.DeleteFunc(slices.Clone(batch), func(key Key) bool { return found[key] })
	made, refused, err := l.embed(ctx, wanted, texts)
	if err == nil && len(made) == 0 && len(refused) > 1 {
		err = fmt.Errorf("the model refuses all of %d texts: %w", len(refused), ErrRefused)
	}
	l.mu.Lock()
	l.lacking = l.lacking[len(batch):]
	if err != nil { // others first: these may be why
		l.lacking = append(l.lacking, batch...)
		l.mu.Unlock()
		return err
	}
	for _, key := range refused {
		l.refused[key] = true
	}
	l.mu.Unlock()
	err = l.keep(ctx, made)
	l.rows.put(made, l.remote())
	return err
}

// embed gives the vectors of texts, and those that the model refuses: a batch that it refuses is halved until one is left.
func (l *Library) embed(ctx context.Context, keys []Key, texts map[Key]string) (made map[Key][]float32, refused []Key, err error) {
	if len(keys) == 0 {
		return nil, nil, nil
	}
	batch := make([]string, len(keys))
	for i, key := range keys {
		batch[i] = texts[key]
	}
	vectors, err := l.embedder.Embed(ctx, Offered, batch)
	if errors.Is(err, ErrRefused) {
		if len(keys) == 1 {
			return nil, keys, nil
		}
		made, refused, err = l.embed(ctx, keys[:len(keys)/2], texts)
		if err != nil {
			return nil, nil, err
		}
		more, bad, err := l.embed(ctx, keys[len(keys)/2:], texts)
		if err != nil {
			return nil, nil, err
		}
		if made == nil {
			made = map[Key][]float32{}
		}
		maps.Copy(made, more)
		return made, append(slices.Clone(refused), bad...), nil
	}
	if err == nil {
		err = checkVectors(vectors, len(keys))
	}
	if err != nil {
		return nil, nil, err
	}
	if _, dimension := l.rows.size(); len(vectors[0]) != dimension {
		l.doubt()
		return nil, nil, fmt.Errorf("the model gave vectors of %d dimensions, and before of %d", len(vectors[0]), dimension)
	}
	made = make(map[Key][]float32, len(keys))
	for i, key := range keys {
		made[key] = vectors[i]
	}
	return made, nil, nil
}
