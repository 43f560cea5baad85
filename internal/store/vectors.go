package store

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/index"
)

const (
	// DefaultCollection names the collection of vectors in a database that has others too.
	DefaultCollection = "drawbridge_tools"
	// defaultSearchTimeout is how long a search waits for an external vector store.
	defaultSearchTimeout = 2 * time.Second
	// bulkVectorTimeout bounds reading and saving many vectors, which no caller waits for.
	bulkVectorTimeout = time.Minute
	// vectorCheckTimeout is how long the check waits for an external vector store.
	vectorCheckTimeout = 10 * time.Second
	// vectorRetryPause is the pause after an external vector store did not answer.
	vectorRetryPause = 5 * time.Second
)

// VectorOptions are options of a vector store. The zero value works.
type VectorOptions struct {
	// Collection names the table of Postgres, and begins the names of Qdrant's collections; empty is DefaultCollection.
	Collection string
	// SearchTimeout is how long a search waits; 0 is defaultSearchTimeout.
	SearchTimeout time.Duration
	// TLS is for qdrants:// URLs; nil trusts whom the system trusts.
	TLS *tls.Config
}

// A VectorStore saves vectors in the store or in another database, and returns them with length 1. A database elsewhere
// that does not answer is an error soon; for a moment after that, calls fail at once. Errors are *drawbridge.Fault
// values, kind Backend, that name the place and hold none of its secrets.
type VectorStore struct {
	name    string
	backend vectorBackend
	// fault returns the code and the next step for an error of the place.
	fault         func(err error) (code drawbridge.FaultCode, next string)
	searchTimeout time.Duration
	// retryPause is how long it is not asked again.
	retryPause time.Duration

	// mu guards the end of the pause after a failure, and its reason.
	mu      sync.Mutex
	retryAt time.Time
	lastErr error
}

var (
	_ index.VectorStore     = (*VectorStore)(nil)
	_ index.VectorForgetter = (*VectorStore)(nil)
)

// A vectorBackend is where vectors are. Keys come in order, each once, and at least one; vectors at the length 1, and
// of one dimension.
type vectorBackend interface {
	Have(ctx context.Context, model string, keys []index.TextKey) (map[index.TextKey][]float32, error)
	Keep(ctx context.Context, model string, dimension int, keys []index.TextKey,
		vectors map[index.TextKey][]float32) error
	Nearest(ctx context.Context, model string, question []float32, most int, among []index.TextKey) (
		[]index.Neighbor, error)
	// Forget removes a model's vectors and its dimension.
	Forget(ctx context.Context, model string) error
	healthChecker
}

// healthChecker is a place as those see it who only look whether it is there.
type healthChecker interface {
	// Check returns an error if the place does not answer.
	Check(ctx context.Context) error
	Close() error
}

// VectorStore returns a vector store in this store. Closing it leaves the store open.
func (db *DB) VectorStore() *VectorStore {
	return &VectorStore{name: db.name, backend: sqlVectors{db, maxVectors}, fault: db.dialect.fault,
		searchTimeout: bulkVectorTimeout}
}

// OpenVectorStore returns the vector store at a URL: postgres:// is a database with pgvector, qdrant:// and qdrants://
// are a Qdrant server, by its gRPC port, without and with TLS. It connects at the first use. Code InvalidInput means
// the URL.
func OpenVectorStore(location string, o VectorOptions) (*VectorStore, error) {
	collection := cmp.Or(o.Collection, DefaultCollection)
	v := &VectorStore{searchTimeout: cmp.Or(o.SearchTimeout, defaultSearchTimeout), retryPause: vectorRetryPause}
	err := CheckCollection(collection)
	if err == nil {
		location, err = lowerScheme(location, places)
	}
	switch {
	case err != nil:
	case strings.HasPrefix(location, "postgres"):
		v.fault = pgvectorFault
		v.backend, v.name, err = openPgvector(location, collection)
	default:
		v.fault = qdrantFault
		v.backend, v.name, err = openQdrant(location, collection, o.TLS)
	}
	if err != nil {
		return nil, &drawbridge.Fault{
			Kind: drawbridge.Backend, Code: drawbridge.InvalidInput, Step: "open the vector store", Err: err,
			Next: "write postgres://user:password@host:5432/database, qdrant://host:6334 or qdrants://KEY@host:6334",
		}
	}
	return v, nil
}

// pgvectorFault is postgresFault for a database whose extension may be missing.
func pgvectorFault(err error) (code drawbridge.FaultCode, next string) {
	if errors.Is(err, errNoVectorExtension) {
		return drawbridge.InvalidInput,
			"install pgvector on the server, and have its administrator run CREATE EXTENSION vector in the database"
	}
	return postgresFault(err)
}

// Name is where the vectors are, for people: it holds no password.
func (v *VectorStore) Name() string { return v.name }

// Get implements [index.VectorStore].
func (v *VectorStore) Get(ctx context.Context, model string, keys []index.TextKey) (all map[index.TextKey][]float32,
	err error) {
	if len(keys) == 0 {
		return nil, nil
	}
	err = v.callBackend(ctx, "read vectors", max(v.searchTimeout, bulkVectorTimeout),
		func(ctx context.Context) (err error) {
			all, err = v.backend.Have(ctx, model, SortedKeys(keys))
			return err
		})
	if err != nil {
		return nil, err
	}
	return all, nil
}

// Put implements [index.VectorStore]. Code InvalidInput means vectors of another dimension than the model's others,
// one without a direction, or more than the place takes at once.
func (v *VectorStore) Put(ctx context.Context, model string, vectors map[index.TextKey][]float32) error {
	if len(vectors) == 0 {
		return nil
	}
	const step = "keep vectors"
	units := make(map[index.TextKey][]float32, len(vectors))
	keys := make([]index.TextKey, 0, len(vectors))
	dimension := 0
	for key, one := range vectors {
		unit, err := UnitVector(one)
		if err == nil && dimension != 0 && dimension != len(unit) {
			err = fmt.Errorf("the vectors that came of the model %q have %d and %d numbers", model,
				min(dimension, len(unit)), max(dimension, len(unit)))
		}
		if err != nil {
			return v.newFault(step, drawbridge.InvalidInput, err)
		}
		units[key], dimension = unit, len(unit)
		keys = append(keys, key)
	}
	return v.callBackend(ctx, step, max(v.searchTimeout, bulkVectorTimeout), func(ctx context.Context) error {
		return v.backend.Keep(ctx, model, dimension, SortedKeys(keys), units)
	})
}

// Nearest implements [index.VectorStore]. Code InvalidInput means a question of another dimension than the model's
// vectors, or one without a direction.
func (v *VectorStore) Nearest(ctx context.Context, model string, question []float32, most int, among []index.TextKey) (
	near []index.Neighbor, err error) {
	if most <= 0 || len(among) == 0 {
		return nil, nil
	}
	const step = "find the nearest vectors"
	unit, err := UnitVector(question)
	if err != nil {
		return nil, v.newFault(step, drawbridge.InvalidInput, err)
	}
	err = v.callBackend(ctx, step, v.searchTimeout, func(ctx context.Context) (err error) {
		near, err = v.backend.Nearest(ctx, model, unit, most, SortedKeys(among))
		return err
	})
	if err != nil {
		return nil, err
	}
	return near, nil
}

// Forget implements [index.VectorForgetter]. Vectors of another dimension may be kept of the model then.
func (v *VectorStore) Forget(ctx context.Context, model string) error {
	return v.callBackend(ctx, "forget vectors", max(v.searchTimeout, bulkVectorTimeout),
		func(ctx context.Context) error {
			return v.backend.Forget(ctx, model)
		})
}

// Check returns an error if the place does not answer.
func (v *VectorStore) Check(ctx context.Context) error {
	v.noteOutcome(nil)
	return v.callBackend(ctx, "ask", max(v.searchTimeout, vectorCheckTimeout), v.backend.Check)
}

// Close closes the vector store. It waits for operations in progress.
func (v *VectorStore) Close() error {
	if err := v.backend.Close(); err != nil {
		return v.newFault("close", drawbridge.ServerError, err)
	}
	return nil
}

// callBackend does work, unless the place rests.
func (v *VectorStore) callBackend(ctx context.Context, step string, most time.Duration,
	work func(context.Context) error) error {
	if why := v.pausedError(); why != nil {
		return v.newFault(step, drawbridge.Transient, why)
	}
	limited, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	err := work(limited)
	if err == nil {
		v.noteOutcome(nil)
		return nil
	}
	f, isFault := errors.AsType[*drawbridge.Fault](err)
	wrong, isWrong := errors.AsType[*DimensionError](err)
	switch {
	case ctx.Err() != nil:
		return v.newFault(step, drawbridge.Transient, err) // the caller gave up, which is not a failure of the place
	case limited.Err() != nil:
		f = v.newFault(step, drawbridge.Transient, fmt.Errorf("no answer within %s", most))
		f.Next = "see that the server runs and can be reached"
	case errors.Is(err, errTooManyVectors):
		f = v.newFault(step, drawbridge.InvalidInput, err)
	case isWrong:
		f = v.newFault(step, drawbridge.InvalidInput, wrong)
		f.Next = "name the model otherwise, or keep its vectors under another collection"
	case !isFault:
		f = v.newFault(step, drawbridge.ServerError, err)
		f.Code, f.Next = v.fault(err)
	}
	if f.Code == drawbridge.Transient || f.Code == drawbridge.RateLimited {
		v.noteOutcome(f.Err)
	}
	return f
}

// pausedError returns the reason why the place is not to be asked now; nil if it may be. After a pause one call tries,
// and the others get its result.
func (v *VectorStore) pausedError() error {
	v.mu.Lock()
	defer v.mu.Unlock()
	now := time.Now()
	if v.lastErr != nil && now.Before(v.retryAt) {
		return v.lastErr
	}
	v.retryAt = now.Add(v.retryPause)
	return nil
}

// noteOutcome notes how the place answered: an error sends it to rest.
func (v *VectorStore) noteOutcome(err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.lastErr = nil
	if err != nil && v.retryPause > 0 {
		v.lastErr, v.retryAt = err, time.Now().Add(v.retryPause)
	}
}

func (v *VectorStore) newFault(step string, code drawbridge.FaultCode, err error) *drawbridge.Fault {
	return &drawbridge.Fault{Kind: drawbridge.Backend, Code: code, Step: fmt.Sprintf("vector store %s: %s", v.name,
		step), Err: FlattenConnectError(err)}
}
