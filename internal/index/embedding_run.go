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
	// batchTimeout is the time limit for embedding a batch, including retries.
	batchTimeout = 2 * time.Minute
	// firstRetryPause is the pause before a failed batch is retried. The pause doubles after each failure, up to
	// maxRetryPause.
	firstRetryPause, maxRetryPause = time.Second, 5 * time.Minute
)

// Run embeds the offered texts that have no vector, batch by batch, until ctx is done. If a batch fails, Run retries
// after a pause, which increases with each failure. It returns nil.
func (l *EmbeddingIndex) Run(ctx context.Context) error {
	pause, rest := firstRetryPause, time.Time{} // embedding continues at rest
	for ctx.Err() == nil {
		l.mu.Lock()
		away, next := !l.breaker.open.IsZero(), l.breaker.next
		l.mu.Unlock()
		if l.working.TryLock() { // even if the model does not answer, because this limits the length of l.offered
			l.keyOffered()
			l.working.Unlock()
		}
		if away && !time.Now().Before(next) {
			l.probeModel(ctx)
			continue
		}
		if !time.Now().Before(rest) {
			more, err := l.doNextStep(ctx)
			switch {
			case err != nil:
				wait := pause
				if later, ok := errors.AsType[RetryAfterError](err); ok {
					wait = max(wait, min(later.RetryAfter(), maxRetryPause))
				}
				rest, pause = time.Now().Add(wait), min(2*pause, maxRetryPause)
			case more:
				pause = firstRetryPause
				continue
			}
		}
		if !away {
			next = time.Time{}
		}
		if rest.After(time.Now()) && (next.IsZero() || rest.Before(next)) {
			next = rest
		}
		l.waitForWork(ctx, next)
	}
	return nil
}

// waitForWork waits until there is work or ctx is done. If until is not zero, it waits at most until that time.
func (l *EmbeddingIndex) waitForWork(ctx context.Context, until time.Time) {
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

// EmbedAll embeds all offered documents now. It stops at the first error and returns it. After each step it calls
// told with the number of completed texts (embedded or refused) and the total number of texts.
func (l *EmbeddingIndex) EmbedAll(ctx context.Context, told func(done, of int)) error {
	for {
		more, err := l.doNextStep(ctx)
		s := l.Status()
		told(s.Vectors+s.Refused, s.Texts)
		if err != nil || !more {
			return err
		}
	}
}

// ForgetVectors deletes all vectors in memory and in the store, so that all texts are embedded again.
func (l *EmbeddingIndex) ForgetVectors(ctx context.Context) error {
	l.working.Lock()
	defer l.working.Unlock()
	if f, ok := l.o.Vectors.(VectorForgetter); ok {
		if err := f.Forget(ctx, l.embedder.Model()); err != nil {
			return fmt.Errorf("forget the vectors of %s: %w", l.embedder.Model(), err)
		}
	}
	l.resetVectors(0)
	l.recheckModel()
	return nil
}

// doNextStep does one step of the work of Run, such as one batch. more reports whether there may be further work. A
// returned error is already in the status.
func (l *EmbeddingIndex) doNextStep(ctx context.Context) (more bool, err error) {
	l.working.Lock()
	defer l.working.Unlock()
	l.keyOffered()
	l.mu.Lock()
	sure, fresh, unkept := l.modelVerified, len(l.notLoaded), len(l.notStored)
	todo := fresh + len(l.notEmbedded) + unkept
	idle := todo == 0 && (sure || len(l.known) == 0)
	l.mu.Unlock()
	if idle {
		return false, nil
	}
	within, cancel := context.WithTimeout(ctx, batchTimeout)
	defer cancel()
	switch {
	case !sure:
		err = l.verifyModel(within)
	case unkept > 0:
		err = l.storeVectors(within, nil)
	case fresh > 0:
		err = l.loadStored(within)
	default:
		err = l.embedNext(within)
	}
	if ctx.Err() != nil {
		return true, ctx.Err()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if errors.Is(err, errVectorStore) && l.documentError.text == "" {
		l.o.Logger.Warn("vectors of tools are not kept", "model", l.embedder.Model(), "err", err)
	}
	l.documentError = newLastError(err)
	if err != nil && !errors.Is(err, errVectorStore) {
		l.noteFailure(err, 1)
	}
	return true, err
}

// keyOffered computes the keys of the offered documents and adds the documents to the index. Offer does not do this
// itself, because it takes time to read the schema of each document.
func (l *EmbeddingIndex) keyOffered() {
	l.mu.Lock()
	docs := l.offered
	l.offered = nil
	l.mu.Unlock()
	keys := make([]TextKey, len(docs))
	for i := range docs {
		keys[i] = docs[i].TextKey()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, key := range keys {
		if _, ok := l.known[key]; !ok {
			l.known[key] = docs[i]
			l.notLoaded = append(l.notLoaded, key)
		}
	}
	if over := len(l.known) - maxTexts; over > 0 {
		gone := l.vectors.leastRecentlySearched(l.known, over+maxTexts/10)
		for _, key := range gone {
			delete(l.known, key)
			delete(l.refused, key)
			delete(l.notStored, key)
		}
		unknown := func(key TextKey) bool { _, ok := l.known[key]; return !ok }
		l.notLoaded, l.notEmbedded = slices.DeleteFunc(l.notLoaded, unknown), slices.DeleteFunc(l.notEmbedded, unknown)
		l.vectors.remove(gone)
	}
}

// resetVectors deletes all vectors in memory and sets the dimension of new vectors. The vectors of all texts are then
// loaded from the store or embedded again.
func (l *EmbeddingIndex) resetVectors(dimension int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.vectors.reset(dimension)
	l.era.Add(1)
	l.notLoaded, l.notEmbedded = l.notLoaded[:0], l.notEmbedded[:0]
	clear(l.refused)
	clear(l.notStored)
	for key := range l.known {
		l.notLoaded = append(l.notLoaded, key)
	}
	slices.SortFunc(l.notLoaded, func(a, b TextKey) int { return slices.Compare(a[:], b[:]) })
}

// embedNext embeds the next batch of texts. It loads instead the vectors that another process has stored meanwhile.
func (l *EmbeddingIndex) embedNext(ctx context.Context) error {
	l.mu.Lock()
	batch := slices.Clone(l.notEmbedded[:min(len(l.notEmbedded), l.o.Batch)])
	texts := make(map[TextKey]string, len(batch))
	for _, key := range batch {
		doc := l.known[key]
		texts[key] = doc.EmbeddingText()
	}
	l.mu.Unlock()
	found, err := l.loadVectors(ctx, batch)
	if err != nil {
		return err
	}
	wanted := slices.DeleteFunc(slices.Clone(batch), func(key TextKey) bool { return found[key] })
	made, refused, err := l.embedTexts(ctx, wanted, texts)
	if err == nil && len(made) == 0 && len(refused) > 1 {
		err = fmt.Errorf("the model refuses all of %d texts: %w", len(refused), ErrTextRefused)
	}
	l.mu.Lock()
	l.notEmbedded = l.notEmbedded[len(batch):]
	if err != nil { // move the batch to the end of the queue: its texts may be the cause
		l.notEmbedded = append(l.notEmbedded, batch...)
		l.mu.Unlock()
		return err
	}
	for _, key := range refused {
		l.refused[key] = true
	}
	l.mu.Unlock()
	err = l.storeVectors(ctx, made)
	l.vectors.put(made, l.searchesInStore())
	return err
}

// embedTexts returns the vectors of texts, and the keys of the texts that the model refuses. If the model refuses a
// batch, each half of the batch is sent separately, and so on, until the refused texts are known.
func (l *EmbeddingIndex) embedTexts(ctx context.Context, keys []TextKey, texts map[TextKey]string) (
	made map[TextKey][]float32, refused []TextKey, err error) {
	if len(keys) == 0 {
		return nil, nil, nil
	}
	batch := make([]string, len(keys))
	for i, key := range keys {
		batch[i] = texts[key]
	}
	vectors, err := l.embedder.Embed(ctx, RoleDocument, batch)
	if errors.Is(err, ErrTextRefused) {
		if len(keys) == 1 {
			return nil, keys, nil
		}
		made, refused, err = l.embedTexts(ctx, keys[:len(keys)/2], texts)
		if err != nil {
			return nil, nil, err
		}
		more, bad, err := l.embedTexts(ctx, keys[len(keys)/2:], texts)
		if err != nil {
			return nil, nil, err
		}
		if made == nil {
			made = map[TextKey][]float32{}
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
	if _, dimension := l.vectors.size(); len(vectors[0]) != dimension {
		l.recheckModel()
		return nil, nil, fmt.Errorf("the model returned vectors of %d dimensions, and of %d before",
			len(vectors[0]), dimension)
	}
	made = make(map[TextKey][]float32, len(keys))
	for i, key := range keys {
		made[key] = vectors[i]
	}
	return made, nil, nil
}
