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
	// keepTime is how long the keeper may take to keep a batch.
	keepTime = 5 * time.Second
	// loadAtOnce is how many vectors the keeper is asked for at once.
	loadAtOnce = 512
	// sameModel is the cosine between two vectors of one text from which they are of one model: those of two have next to nothing in
	// common, those of one differ by rounding.
	sameModel = 0.9
)

// recognise sees whether the model is the one whose vectors are kept: a text that never changes must have the vector that it had. If
// it has not, what is kept is dropped.
func (l *Library) recognise(ctx context.Context) error {
	vectors, err := l.embedder.Embed(ctx, Offered, []string{probe})
	if err == nil {
		err = checkVectors(vectors, 1)
	}
	if err != nil {
		return err
	}
	key, now := KeyOf(probe), vectors[0]
	before, err := l.have(ctx, []Key{key})
	if err != nil {
		return err
	}
	_, dimension := l.rows.size()
	l.mu.Lock()
	was, kept := before[key]
	if !kept {
		was = l.mark
	}
	l.mark = now
	l.mu.Unlock()
	switch {
	case was != nil && cosine(was, now) < sameModel:
		if err := l.replace(ctx); err != nil {
			return err
		}
		kept = false
		l.begin(len(now))
	case dimension != len(now):
		l.begin(len(now))
	}
	l.mu.Lock()
	l.sure = true
	l.mu.Unlock()
	if !kept {
		return l.keep(ctx, map[Key][]float32{key: now})
	}
	return nil
}

// replace drops what is kept of a model that is another now.
func (l *Library) replace(ctx context.Context) error {
	name := l.embedder.Model()
	f, ok := l.o.Vectors.(Forgetter)
	if ok {
		if err := f.Forget(ctx, name); err != nil {
			return fmt.Errorf("%w: forget the vectors of another %s: %w", errKeeper, name, err)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.state.Replaced++
	l.alone = !ok
	l.o.Logger.Warn("the embedding model is another than it was under the same name: all tools are embedded anew", "model", name)
	return nil
}

// cosine is that between two vectors; of those that differ in dimension it is -1.
func cosine(a, b []float32) float64 {
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

// load asks the keeper for what is fresh.
func (l *Library) load(ctx context.Context) error {
	l.mu.Lock()
	keys := slices.Clone(l.fresh[:min(len(l.fresh), loadAtOnce)])
	l.mu.Unlock()
	found, err := l.found(ctx, keys)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fresh = l.fresh[len(keys):]
	for _, key := range keys {
		if !found[key] {
			l.lacking = append(l.lacking, key)
		}
	}
	return nil
}

// found puts the vectors that are kept into the rows, and gives their keys. Where one of them has another dimension, the model was
// another.
func (l *Library) found(ctx context.Context, keys []Key) (map[Key]bool, error) {
	if l.remote() {
		return l.foundThere(ctx, keys)
	}
	have, err := l.have(ctx, keys)
	if err != nil {
		return nil, err
	}
	_, dimension := l.rows.size()
	found := make(map[Key]bool, len(have))
	for key, v := range have {
		if len(v) != dimension {
			if err := l.replace(ctx); err != nil {
				return nil, err
			}
			l.begin(dimension)
			l.doubt()
			return nil, errReplaced
		}
		found[key] = true
	}
	l.rows.put(have, false)
	return found, nil
}

// foundThere has the keeper say which vectors there are, and give none of them: what lies nearest to any vector are all that there
// are.
func (l *Library) foundThere(ctx context.Context, keys []Key) (map[Key]bool, error) {
	l.mu.Lock()
	mark := l.mark
	l.mu.Unlock()
	near, err := l.o.Vectors.Nearest(ctx, l.embedder.Model(), mark, len(keys), keys)
	if err != nil {
		return nil, fmt.Errorf("%w: look which vectors there are: %w", errKeeper, err)
	}
	found, there := make(map[Key]bool, len(near)), make(map[Key][]float32, len(near))
	for _, n := range near {
		found[n.Key], there[n.Key] = true, nil
	}
	l.rows.put(there, true)
	return found, nil
}

var (
	// errKeeper is wrapped by what goes wrong with the keeper: the model may be well.
	errKeeper   = errors.New("the vector store")
	errReplaced = fmt.Errorf("%w: what was kept is of another model", errKeeper)
)

func (l *Library) have(ctx context.Context, keys []Key) (map[Key][]float32, error) {
	if l.isAlone() {
		return nil, nil
	}
	found, err := l.o.Vectors.Have(ctx, l.embedder.Model(), keys)
	if err != nil {
		return nil, fmt.Errorf("%w: read vectors: %w", errKeeper, err)
	}
	return found, nil
}

func (l *Library) isAlone() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.alone
}

// remote says whether vectors are kept elsewhere only.
func (l *Library) remote() bool { return l.o.Remote && !l.isAlone() }

// keep has vectors kept, with those that were not before.
func (l *Library) keep(ctx context.Context, vectors map[Key][]float32) error {
	l.mu.Lock()
	maps.Copy(l.unkept, vectors)
	all := maps.Clone(l.unkept)
	alone := l.alone
	l.mu.Unlock()
	if !alone {
		// What was made cost something: an end that comes now waits a moment.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), keepTime)
		defer cancel()
		if err := l.o.Vectors.Keep(ctx, l.embedder.Model(), all); err != nil {
			return fmt.Errorf("%w: keep vectors: %w", errKeeper, err)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	clear(l.unkept)
	return nil
}
