package index

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"
)

const (
	// storeTimeout is the time limit for storing a batch.
	storeTimeout = 5 * time.Second
	// loadBatch is the number of vectors in one request to the store.
	loadBatch = 512
	// sameModelCosine is the smallest cosine between two vectors of one text that come from the same model. Vectors of
	// one model differ by rounding only; those of different models are unrelated.
	sameModelCosine = 0.9
)

// verifyModel tests whether the model is the one whose vectors are stored: the constant probe text must get the stored
// vector. Otherwise it deletes the stored vectors.
func (l *EmbeddingIndex) verifyModel(ctx context.Context) error {
	vectors, err := l.embedder.Embed(ctx, RoleDocument, []string{probeText})
	if err == nil {
		err = checkVectors(vectors, 1)
	}
	if err != nil {
		return err
	}
	key, now := TextKeyOf(probeText), vectors[0]
	before, err := l.storedVectors(ctx, []TextKey{key})
	if err != nil {
		return err
	}
	_, dimension := l.vectors.size()
	l.mu.Lock()
	was, kept := before[key]
	if !kept {
		was = l.probeVector
	}
	l.probeVector = now
	l.mu.Unlock()
	switch {
	case was != nil && vectorCosine(was, now) < sameModelCosine:
		if err := l.dropStoredVectors(ctx); err != nil {
			return err
		}
		kept = false
		l.resetVectors(len(now))
	case dimension != len(now):
		l.resetVectors(len(now))
	}
	l.mu.Lock()
	l.modelVerified = true
	l.mu.Unlock()
	if !kept {
		return l.storeVectors(ctx, map[TextKey][]float32{key: now})
	}
	return nil
}

// dropStoredVectors deletes the stored vectors of a model that was replaced.
func (l *EmbeddingIndex) dropStoredVectors(ctx context.Context) error {
	name := l.embedder.Model()
	f, ok := l.o.Vectors.(VectorForgetter)
	if ok {
		if err := f.Forget(ctx, name); err != nil {
			return fmt.Errorf("%w: forget the vectors of another %s: %w", errVectorStore, name, err)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.state.Replaced++
	l.storeGone = !ok
	l.o.Logger.Warn("the embedding model has changed under the same name: all tools are embedded again",
		"model", name)
	return nil
}

// vectorCosine returns the cosine of two vectors, or -1 if their dimensions differ.
func vectorCosine(a, b []float32) float64 {
	if len(a) != len(b) {
		return -1
	}
	var product, as, bs float64
	for i := range a {
		x, y := float64(a[i]), float64(b[i])
		product, as, bs = product+x*y, as+x*x, bs+y*y
	}
	if as == 0 || bs == 0 {
		return -1
	}
	return product / math.Sqrt(as*bs)
}

// loadStored reads the stored vectors of new documents.
func (l *EmbeddingIndex) loadStored(ctx context.Context) error {
	l.mu.Lock()
	keys := slices.Clone(l.notLoaded[:min(len(l.notLoaded), loadBatch)])
	l.mu.Unlock()
	found, err := l.loadVectors(ctx, keys)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.notLoaded = l.notLoaded[len(keys):]
	for _, key := range keys {
		if !found[key] {
			l.notEmbedded = append(l.notEmbedded, key)
		}
	}
	return nil
}

// loadVectors puts the stored vectors of the keys into the rows, and returns their keys. A stored
// vector of another dimension is from another model: all stored vectors are dropped then, and errReplaced is returned.
func (l *EmbeddingIndex) loadVectors(ctx context.Context, keys []TextKey) (map[TextKey]bool, error) {
	if l.searchesInStore() {
		return l.findStoredVectors(ctx, keys)
	}
	have, err := l.storedVectors(ctx, keys)
	if err != nil {
		return nil, err
	}
	_, dimension := l.vectors.size()
	found := make(map[TextKey]bool, len(have))
	for key, v := range have {
		if len(v) != dimension {
			if err := l.dropStoredVectors(ctx); err != nil {
				return nil, err
			}
			l.resetVectors(dimension)
			l.recheckModel()
			return nil, errReplaced
		}
		found[key] = true
	}
	l.vectors.put(have, false)
	return found, nil
}

// findStoredVectors returns the keys that have a vector in the store, without reading the vectors. It searches for the
// nearest neighbours of an arbitrary vector, with a limit that includes all keys.
func (l *EmbeddingIndex) findStoredVectors(ctx context.Context, keys []TextKey) (map[TextKey]bool, error) {
	l.mu.Lock()
	mark := l.probeVector
	l.mu.Unlock()
	near, err := l.o.Vectors.Nearest(ctx, l.embedder.Model(), mark, len(keys), keys)
	if err != nil {
		return nil, fmt.Errorf("%w: look which vectors there are: %w", errVectorStore, err)
	}
	found, there := make(map[TextKey]bool, len(near)), make(map[TextKey][]float32, len(near))
	for _, n := range near {
		found[n.Key], there[n.Key] = true, nil
	}
	l.vectors.put(there, true)
	return found, nil
}

var (
	// errVectorStore is wrapped by errors of the vector store, which say nothing about the model.
	errVectorStore = errors.New("the vector store")
	errReplaced    = fmt.Errorf("%w: the stored vectors are of another model", errVectorStore)
)

func (l *EmbeddingIndex) storedVectors(ctx context.Context, keys []TextKey) (map[TextKey][]float32, error) {
	if l.isStoreGone() {
		return nil, nil
	}
	found, err := l.o.Vectors.Get(ctx, l.embedder.Model(), keys)
	if err != nil {
		return nil, fmt.Errorf("%w: read vectors: %w", errVectorStore, err)
	}
	return found, nil
}

func (l *EmbeddingIndex) isStoreGone() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.storeGone
}

// searchesInStore reports whether vectors are kept in the store only, not in memory.
func (l *EmbeddingIndex) searchesInStore() bool { return l.o.SearchInStore && !l.isStoreGone() }

// storeVectors stores vectors, together with those that failed to be stored before.
func (l *EmbeddingIndex) storeVectors(ctx context.Context, vectors map[TextKey][]float32) error {
	l.mu.Lock()
	maps.Copy(l.notStored, vectors)
	all := maps.Clone(l.notStored)
	alone := l.storeGone
	l.mu.Unlock()
	if !alone {
		// Embedding has a cost, so the vectors are stored even if the context has just ended.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
		defer cancel()
		if err := l.o.Vectors.Put(ctx, l.embedder.Model(), all); err != nil {
			return fmt.Errorf("%w: keep vectors: %w", errVectorStore, err)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	clear(l.notStored)
	return nil
}
