package index_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/drawbridge-mcp/drawbridge/internal/index"
	gocmp "github.com/google/go-cmp/cmp"
)

// A fakeModel embeds by counting letters, so that texts with the same letters lie near to each other.
type fakeModel struct {
	mu        sync.Mutex
	dimension int
	seed      int // another seed is another model
	// before is called first with what is asked; its error is the answer.
	before func(ctx context.Context, of index.EmbedRole, texts []string) error
	// asked are the texts that were embedded, by role.
	asked map[index.EmbedRole][]string
}

func newModel(dimension int) *fakeModel {
	return &fakeModel{dimension: dimension, asked: map[index.EmbedRole][]string{}}
}

func (m *fakeModel) Model() string { return "fake" }

func (m *fakeModel) Embed(ctx context.Context, of index.EmbedRole, texts []string) ([][]float32, error) {
	m.mu.Lock()
	before := m.before
	m.asked[of] = append(m.asked[of], texts...)
	m.mu.Unlock()
	if before != nil {
		if err := before(ctx, of, texts); err != nil {
			return nil, err
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	var all [][]float32
	for _, text := range texts {
		v := make([]float32, m.dimension)
		for _, r := range strings.ToLower(text) {
			if r >= 'a' && r <= 'z' {
				v[(int(r-'a')*(m.seed*7+1)+m.seed)%m.dimension]++
			}
		}
		if m.seed != 0 {
			for i := range v {
				v[i] = -v[i]
			}
		}
		v[0] += 0.01
		all = append(all, v)
	}
	return all, nil
}

func (m *fakeModel) set(change func(m *fakeModel)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	change(m)
}

// texts are those that were embedded.
func (m *fakeModel) texts(of index.EmbedRole) []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.asked[of])
}

func (m *fakeModel) times(of index.EmbedRole) int { return len(m.texts(of)) }

// fakeVectors keep vectors in memory.
type fakeVectors struct {
	mu     sync.Mutex
	kept   map[index.TextKey][]float32
	err    error
	read   int // how many keys were asked for
	forgot int // how often
}

func newVectors() *fakeVectors { return &fakeVectors{kept: map[index.TextKey][]float32{}} }

func (f *fakeVectors) Get(_ context.Context, _ string, keys []index.TextKey) (map[index.TextKey][]float32, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.read += len(keys)
	have := map[index.TextKey][]float32{}
	for _, key := range keys {
		if v, ok := f.kept[key]; ok {
			have[key] = v
		}
	}
	return have, f.err
}

func (f *fakeVectors) Put(_ context.Context, _ string, vectors map[index.TextKey][]float32) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err != nil {
		return f.err
	}
	for key, v := range vectors {
		if f.kept[key] == nil {
			f.kept[key] = v
		}
	}
	return nil
}

func (f *fakeVectors) Nearest(_ context.Context, _ string, q []float32, most int, among []index.TextKey) (
	[]index.Neighbor, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var all []index.Neighbor
	for _, key := range among {
		if f.kept[key] == nil {
			continue
		}
		var product, a, b float64
		for i, x := range f.kept[key] {
			product, a, b = product+float64(x)*float64(q[i]), a+float64(x)*float64(x), b+float64(q[i])*float64(q[i])
		}
		all = append(all, index.Neighbor{Key: key, Cosine: float32(product / math.Sqrt(a*b))})
	}
	slices.SortFunc(all, func(a, b index.Neighbor) int {
		return cmp.Or(cmp.Compare(b.Cosine, a.Cosine), bytes.Compare(a.Key[:], b.Key[:]))
	})
	return all[:min(most, len(all))], f.err
}

func (f *fakeVectors) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.kept)
}

// A forgetting one is what most keepers are.
type forgetting struct{ *fakeVectors }

func (f forgetting) Forget(context.Context, string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.forgot++
	f.kept = map[index.TextKey][]float32{}
	return f.err
}

func keysOf(docs []index.Document) (keys []index.TextKey) {
	for _, d := range docs {
		keys = append(keys, d.TextKey())
	}
	return keys
}

// runs a library until the test ends.
func runs(t *testing.T, m index.Embedder, o index.EmbeddingIndexOptions) *index.EmbeddingIndex {
	t.Helper()
	l := index.NewEmbeddingIndex(m, o)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- l.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return l
}

// ready is a library with the desk's documents, all of which have vectors.
func ready(t *testing.T, m *fakeModel, o index.EmbeddingIndexOptions) (*index.EmbeddingIndex, []index.TextKey) {
	t.Helper()
	l := runs(t, m, o)
	l.Offer(desk())
	synctest.Wait()
	if s := l.Status(); s.Vectors != len(desk()) || s.Err != "" {
		t.Fatalf("%+v", s)
	}
	return l, keysOf(desk())
}

// soon asks a question and holds the answer to the deadline.
func soon(t *testing.T, l *index.EmbeddingIndex, question string, among []index.TextKey) ([]index.Neighbor, error) {
	t.Helper()
	began := time.Now()
	near, err := l.Nearest(t.Context(), question, 3, among)
	if took := time.Since(began); took > 250*time.Millisecond {
		t.Errorf("%q took %v", question, took)
	}
	return near, err
}

func TestLibraryFindsWhatIsNear(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newModel(26)
		l, keys := ready(t, m, index.EmbeddingIndexOptions{Batch: 3})
		for _, d := range desk() {
			near, err := soon(t, l, d.EmbeddingText(), keys)
			if err != nil || len(near) != 3 || near[0].Key != d.TextKey() || near[0].Cosine < 0.999 ||
				near[0].Cosine < near[1].Cosine {
				t.Errorf("%s: %v, %v", d.ID, near, err)
			}
		}
		some := keys[:2]
		if near, err := soon(t, l, desk()[5].EmbeddingText(), some); err != nil || len(near) != 2 ||
			!slices.Contains(some, near[0].Key) {
			t.Error(near, err)
		}
		if near, err := soon(t, l, "mail", nil); near != nil || err != nil {
			t.Error(near, err)
		}
		if _, err := soon(t, l, "", keys); err == nil {
			t.Error("no question has an answer")
		}
		want := index.EmbeddingIndexStatus{Model: "fake", Dimension: 26, Texts: 8, Vectors: 8, Asked: 8}
		if diff := gocmp.Diff(want, l.Status()); diff != "" {
			t.Error(diff)
		}
	})
}

// TestLibraryAgreesWithExactSearch compares the small rows in memory with whole numbers.
func TestLibraryAgreesWithExactSearch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, kept := newModel(64), newVectors()
		l, keys := ready(t, m, index.EmbeddingIndexOptions{Vectors: kept})
		for _, question := range []string{"send mail", "which files are there", "the weather of tomorrow"} {
			got, err := l.Nearest(t.Context(), question, 8, keys)
			if err != nil {
				t.Fatal(err)
			}
			v, _ := newModel(64).Embed(t.Context(), index.RoleQuery, []string{question})
			want, _ := kept.Nearest(t.Context(), "fake", v[0], 8, keys)
			if diff := gocmp.Diff(want, got,
				gocmp.Comparer(func(a, b float32) bool { return math.Abs(float64(a-b)) < 0.01 })); diff != "" {
				t.Errorf("%s: %s", question, diff)
			}
		}
	})
}

// TestNothingIsEmbeddedTwice has several libraries, one after the other and two at a time, on one keeper: each text is
// embedded once, but for the one by which the model is recognised.
func TestNothingIsEmbeddedTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, kept := newModel(26), forgetting{newVectors()}
		ready(t, m, index.EmbeddingIndexOptions{Vectors: kept, Batch: 3})
		l, keys := ready(t, m, index.EmbeddingIndexOptions{Vectors: kept, Batch: 3})
		l.Offer(desk())
		l.Offer(desk()[:2])
		synctest.Wait()
		seen := map[string]int{}
		for _, text := range m.texts(index.RoleDocument) {
			seen[text]++
		}
		for _, d := range desk() {
			if seen[d.EmbeddingText()] != 1 {
				t.Errorf("%s was embedded %d times", d.ID, seen[d.EmbeddingText()])
			}
		}
		for range 5 {
			if _, err := soon(t, l, "send mail", keys); err != nil {
				t.Error(err)
			}
		}
		if n := m.times(index.RoleQuery); n != 1 {
			t.Errorf("the question was embedded %d times", n)
		}
		if got := kept.count(); got != len(desk())+1 || kept.forgot != 0 {
			t.Errorf("%d vectors are kept, forgotten %d times", got, kept.forgot)
		}
	})
}

// TestQuestionsAskedAtOnceWaitForOneAnswer has many ask the same.
func TestQuestionsAskedAtOnceWaitForOneAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newModel(26)
		l, keys := ready(t, m, index.EmbeddingIndexOptions{})
		m.set(func(m *fakeModel) {
			m.before = func(ctx context.Context, _ index.EmbedRole, _ []string) error {
				<-time.After(100 * time.Millisecond)
				return ctx.Err()
			}
		})
		gone, leave := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer leave()
		var group sync.WaitGroup
		group.Go(func() { // who asks first, and goes away
			if _, err := l.Nearest(gone, "send mail", 3, keys); !errors.Is(err, context.DeadlineExceeded) {
				t.Error(err)
			}
		})
		synctest.Wait()
		for range 20 {
			group.Go(func() {
				if near, err := l.Nearest(t.Context(), "send mail", 3, keys); err != nil || len(near) != 3 {
					t.Error(near, err)
				}
			})
		}
		group.Wait()
		if n := m.times(index.RoleQuery); n != 2 {
			t.Errorf("the question was embedded %d times", n)
		}
		if s := l.Status(); s.Missed != 0 || s.Asked != 1 {
			t.Errorf("%+v", s)
		}
	})
}

// TestChangedModel puts another model behind the same name: while it runs, and between two runs; one with another
// dimension, and one with the same. No vector of the old one is compared with one of the new.
func TestChangedModel(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(m *fakeModel)
	}{
		{"another dimension", func(m *fakeModel) { m.dimension = 30 }},
		{"the same dimension", func(m *fakeModel) { m.seed = 1 }},
	} {
		t.Run(tt.name+", at the start", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m, kept := newModel(26), forgetting{newVectors()}
				ready(t, m, index.EmbeddingIndexOptions{Vectors: kept})
				other := newModel(26)
				tt.change(other)
				l, keys := ready(t, other, index.EmbeddingIndexOptions{Vectors: kept})
				if near, err := soon(t, l, desk()[2].EmbeddingText(), keys); err != nil || near[0].Key != keys[2] {
					t.Error(near, err)
				}
				if s := l.Status(); s.Replaced != 1 || s.Dimension != other.dimension || kept.forgot != 1 ||
					other.times(index.RoleDocument) != 9 {
					t.Errorf("%+v", s)
				}
				again := newModel(26)
				tt.change(again)
				l, _ = ready(t, again, index.EmbeddingIndexOptions{Vectors: kept})
				if s := l.Status(); s.Replaced != 0 || again.times(index.RoleDocument) != 1 {
					t.Errorf("%+v", s)
				}
			})
		})
		t.Run(tt.name+", in the midst", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m, kept := newModel(26), newVectors() // which cannot forget
				l, keys := ready(t, m, index.EmbeddingIndexOptions{Vectors: kept})
				m.set(func(m *fakeModel) {
					m.before = func(context.Context, index.EmbedRole,
						[]string) error {
						return errors.New("it restarts")
					}
				})
				for i := range 3 {
					_, _ = soon(t, l, fmt.Sprint("question ", i), keys)
				}
				m.set(func(m *fakeModel) {
					m.before = nil
					tt.change(m)
				})
				<-time.After(2 * time.Minute)
				synctest.Wait()
				if near, err := soon(t, l, desk()[2].EmbeddingText(), keys); err != nil || near[0].Key != keys[2] {
					t.Error(near, err)
				}
				if s := l.Status(); s.Replaced != 1 || s.Dimension != m.dimension || s.Vectors != 8 || s.Err != "" {
					t.Errorf("%+v", s)
				}
			})
		})
	}
}

// TestKeeperDown takes the store of vectors away: nothing is embedded that may be kept, and what was embedded is kept
// later.
func TestKeeperDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, kept := newModel(26), forgetting{newVectors()}
		kept.err = errors.New("disk full")
		l := runs(t, m, index.EmbeddingIndexOptions{Vectors: kept})
		l.Offer(desk())
		<-time.After(time.Minute)
		synctest.Wait()
		s := l.Status()
		if s.Vectors != 0 || s.Err != "the vector store: read vectors: disk full" || !s.Away.IsZero() {
			t.Errorf("%+v", s)
		}
		if texts := m.texts(index.RoleDocument); len(slices.Compact(texts)) != 1 {
			t.Errorf("%q", texts)
		}
		kept.mu.Lock()
		kept.err = nil
		kept.mu.Unlock()
		<-time.After(5 * time.Minute)
		synctest.Wait()
		if s := l.Status(); s.Vectors != 8 || s.Err != "" || kept.count() != 9 {
			t.Errorf("%+v", s)
		}
	})
}

// TestLibraryElsewhere has the keeper searched, and no vector read from it but the one by which the model is
// recognised.
func TestLibraryElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, kept := newModel(26), forgetting{newVectors()}
		ready(t, m, index.EmbeddingIndexOptions{Vectors: kept, SearchInStore: true})
		before := kept.count()
		l, keys := ready(t, m, index.EmbeddingIndexOptions{Vectors: kept, SearchInStore: true})
		near, err := soon(t, l, desk()[2].EmbeddingText(), keys)
		if err != nil || near[0].Key != keys[2] {
			t.Error(near, err)
		}
		if n := m.times(index.RoleDocument); n != 8+2 || kept.count() != before || kept.read != 2 {
			t.Errorf("%d texts were embedded, %d are kept, %d were read", n, kept.count(), kept.read)
		}
		kept.mu.Lock()
		kept.err = errors.New("disk full")
		kept.mu.Unlock()
		if near, err := soon(t, l, desk()[2].EmbeddingText(), keys); err == nil {
			t.Error(near)
		}
	})
}

// TestFill embeds all at once, gives up at an error, and begins anew after Forget.
func TestFill(t *testing.T) {
	m, kept := newModel(26), forgetting{newVectors()}
	l := index.NewEmbeddingIndex(m, index.EmbeddingIndexOptions{Vectors: kept, Batch: 3})
	l.Offer(desk())
	var told []int
	tell := func(done, of int) { told = append(told, done*100+of) }
	if err := l.EmbedAll(t.Context(), tell); err != nil {
		t.Fatal(err)
	}
	if diff := gocmp.Diff([]int{8, 8, 308, 608, 808, 808}, told); diff != "" {
		t.Error(diff)
	}
	if err := l.ForgetVectors(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := l.EmbedAll(t.Context(), tell); err != nil || m.times(index.RoleDocument) != 18 || kept.forgot != 1 {
		t.Error(err, m.asked)
	}
	m.before = func(context.Context, index.EmbedRole, []string) error { return errors.New("no credit") }
	l.Offer([]index.Document{tool("new", "tool", "that nobody knows")})
	if err := l.EmbedAll(t.Context(), tell); err == nil || err.Error() != "no credit" {
		t.Error(err)
	}
}

// TestRunEndsAtOnce ends it in the midst of a batch, and while it waits.
func TestRunEndsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newModel(26)
		m.before = func(ctx context.Context, _ index.EmbedRole, _ []string) error {
			<-ctx.Done()
			return ctx.Err()
		}
		l := index.NewEmbeddingIndex(m, index.EmbeddingIndexOptions{})
		l.Offer(desk())
		for _, after := range []time.Duration{0, time.Second} {
			ctx, stop := context.WithTimeout(t.Context(), after)
			began := time.Now()
			if err := l.Run(ctx); err != nil || time.Since(began) > after {
				t.Error(err, time.Since(began))
			}
			stop()
		}
		if s := l.Status(); s.Err != "" {
			t.Errorf("%+v", s)
		}
	})
}

// TestLibraryUnderStrain is for the race detector.
func TestLibraryUnderStrain(t *testing.T) {
	m, kept := newModel(26), forgetting{newVectors()}
	l := runs(t, m, index.EmbeddingIndexOptions{Vectors: kept, Batch: 2})
	var group sync.WaitGroup
	keys := keysOf(desk())
	for i := range 8 {
		group.Go(func() {
			for j := range 50 {
				l.Offer([]index.Document{desk()[j%8], tool("s", fmt.Sprint(i, j), "something")})
				_, _ = l.Nearest(t.Context(), fmt.Sprint("question ", j%10), 3, keys)
				_ = l.Status()
				if j == 25 {
					_ = l.ForgetVectors(t.Context())
				}
			}
		})
	}
	group.Wait()
	if err := l.EmbedAll(t.Context(), func(int, int) {}); err != nil {
		t.Fatal(err)
	}
	if s := l.Status(); s.Vectors != s.Texts || s.Texts != 408 {
		t.Errorf("%+v", s)
	}
	if got := kept.count(); got != 409 {
		t.Error(got)
	}
}
