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
	// storeTimeout is the time limit for storing a batch of vectors.
	storeTimeout = 5 * time.Second
	// loadBatch is the number of vectors that one request to the store loads.
	loadBatch = 512
	// sameModelCosine is the minimum cosine of two vectors of one text that come from the same model. Such vectors
	// differ only by rounding, while vectors of different models are unrelated.
	sameModelCosine = 0.9
)

// verifyModel tests whether the model is the one that computed the stored vectors. It embeds probeText and compares
// the vector with the stored vector of probeText. If their cosine is below sameModelCosine, the model was replaced,
// and verifyModel deletes all stored vectors of the model.
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

// dropStoredVectors deletes the stored vectors of a model that was replaced. If the store is not a VectorForgetter,
// the vectors cannot be deleted, and the store is not used any more.
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

// loadStored loads the stored vectors of the next texts in notLoaded. It adds the texts without a stored vector to
// notEmbedded.
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

// loadVectors loads the stored vectors of the keys into memory, and returns the keys that have a stored vector. If a
// stored vector has another dimension than the model's vectors, it is from another model. Then all stored vectors are
// deleted, and the error is errReplaced.
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

// findStoredVectors returns the keys that have a vector in the store, without reading the vectors. It asks the store
// for the nearest neighbours of an arbitrary vector. The limit is the number of keys, so the store returns every key
// that has a vector.
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
	// errVectorStore is wrapped by all errors of the vector store. So they can be distinguished from errors of the
	// model.
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

// searchesInStore reports whether vectors exist only in the store, and not in memory.
func (l *EmbeddingIndex) searchesInStore() bool { return l.o.SearchInStore && !l.isStoreGone() }

// storeVectors stores the given vectors, and the earlier vectors in notStored.
func (l *EmbeddingIndex) storeVectors(ctx context.Context, vectors map[TextKey][]float32) error {
	l.mu.Lock()
	maps.Copy(l.notStored, vectors)
	all := maps.Clone(l.notStored)
	alone := l.storeGone
	l.mu.Unlock()
	if !alone {
		// Embedding costs time or money, so the vectors are stored even if the context is done.
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
