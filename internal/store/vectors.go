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
	// DefaultCollection is the default name of the collection of vectors in an external database.
	DefaultCollection = "drawbridge_tools"
	// defaultSearchTimeout is the default time limit of a search in an external vector store.
	defaultSearchTimeout = 2 * time.Second
	// bulkVectorTimeout is the time limit for reading and saving many vectors. It may be long, because these
	// operations run in the background.
	bulkVectorTimeout = time.Minute
	// vectorCheckTimeout is the time limit of VectorStore.Check.
	vectorCheckTimeout = 10 * time.Second
	// vectorRetryPause is the time after a failure during which an external vector store gets no requests.
	vectorRetryPause = 5 * time.Second
)

// VectorOptions are the options of a vector store. The zero value is valid.
type VectorOptions struct {
	// Collection is the name of the Postgres table, or the prefix of the Qdrant collections; empty means
	// DefaultCollection.
	Collection string
	// SearchTimeout is the time limit of a search; 0 means defaultSearchTimeout.
	SearchTimeout time.Duration
	// TLS is the TLS configuration for qdrants:// URLs; nil means the system's certificates.
	TLS *tls.Config
}

// A VectorStore saves vectors in the store or in another database, and returns them scaled to length 1. If an
// external database does not answer, a method returns an error after a time limit. During a short pause after that,
// all methods except Check return an error immediately. Errors are *drawbridge.Fault values of kind Backend that name
// the database and contain no secrets.
type VectorStore struct {
	name    string
	backend vectorBackend
	// fault returns the fault code for a backend error, and advice for the user.
	fault         func(err error) (code drawbridge.FaultCode, next string)
	searchTimeout time.Duration
	// retryPause is the time after a failure during which the backend is not called.
	retryPause time.Duration

	// mu guards retryAt, the end of the pause after a failure, and lastErr, the error that caused the pause.
	mu      sync.Mutex
	retryAt time.Time
	lastErr error
}

var (
	_ index.VectorStore     = (*VectorStore)(nil)
	_ index.VectorForgetter = (*VectorStore)(nil)
)

// A vectorBackend is a database of vectors. Callers pass at least one key; keys are sorted and unique. Vectors have
// length 1, and all vectors in one call have the same dimension.
type vectorBackend interface {
	Have(ctx context.Context, model string, keys []index.TextKey) (map[index.TextKey][]float32, error)
	Keep(ctx context.Context, model string, dimension int, keys []index.TextKey,
		vectors map[index.TextKey][]float32) error
	Nearest(ctx context.Context, model string, question []float32, most int, among []index.TextKey) (
		[]index.Neighbor, error)
	// Forget deletes the vectors of a model, and the stored dimension of the model.
	Forget(ctx context.Context, model string) error
	healthChecker
}

// healthChecker is the part of a vectorBackend that checks and closes the connection.
type healthChecker interface {
	// Check returns an error if the backend does not answer.
	Check(ctx context.Context) error
	Close() error
}

// VectorStore returns a vector store that uses the tables of this store. Closing the vector store does not close db.
func (db *DB) VectorStore() *VectorStore {
	return &VectorStore{name: db.name, backend: sqlVectors{db, maxVectors}, fault: db.dialect.fault,
		searchTimeout: bulkVectorTimeout}
}

// OpenVectorStore returns the vector store at a URL. A postgres:// URL is a database with pgvector. A qdrant:// URL
// is the gRPC address of a Qdrant server without TLS, and a qdrants:// URL is the address of a Qdrant server with
// TLS. The function does not connect; the first request does. A fault with code InvalidInput means that the URL or
// the collection's name is invalid.
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

// pgvectorFault returns the fault code for a pgvector error, and advice for the user. It handles a missing extension
// itself, and passes other errors to postgresFault.
func pgvectorFault(err error) (code drawbridge.FaultCode, next string) {
	if errors.Is(err, errNoVectorExtension) {
		return drawbridge.InvalidInput,
			"install pgvector on the server, and have its administrator run CREATE EXTENSION vector in the database"
	}
	return postgresFault(err)
}

// Name returns the address of the vector store without a password, for messages.
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

// Put implements [index.VectorStore]. A fault with code InvalidInput means that a vector is zero or not finite, or
// that it has another dimension than the model's other vectors. The same code means that there are too many vectors
// for one call.
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

// Nearest implements [index.VectorStore]. A fault with code InvalidInput means that the question's vector is zero or
// not finite, or that it has another dimension than the model's vectors.
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

// Forget implements [index.VectorForgetter]. Forget also deletes the model's stored dimension, so that vectors of
// another dimension can be saved for the model.
func (v *VectorStore) Forget(ctx context.Context, model string) error {
	return v.callBackend(ctx, "forget vectors", max(v.searchTimeout, bulkVectorTimeout),
		func(ctx context.Context) error {
			return v.backend.Forget(ctx, model)
		})
}

// Check returns an error if the backend does not answer. It ends a pause after a failure, so the backend is always
// called.
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

// callBackend calls work with the time limit most, and converts its error to a fault. During the pause after a
// failure it returns the last error without calling work.
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
		return v.newFault(step, drawbridge.Transient, err) // the caller's context is done: not a failure of the backend
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

// pausedError returns the error that caused the current pause, or nil if the backend may be called. After a pause,
// only the first caller gets nil, because pausedError begins a further pause for the others. They get the error until
// the first caller's request succeeds, or until the further pause is over.
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

// noteOutcome stores the result of a request to the backend. An error starts a pause, and nil ends the pause.
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
