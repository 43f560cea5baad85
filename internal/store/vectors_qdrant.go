package store

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/index"
	"github.com/qdrant/go-client/qdrant"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

const (
	// qdrantPort is the default gRPC port of Qdrant.
	qdrantPort = 6334
	// qdrantReadBatch is the number of vectors that one read requests. qdrantMaxMessage is the maximum size of a
	// response in bytes.
	qdrantReadBatch, qdrantMaxMessage = 512, 64 << 20
	// qdrantMaxSaveBytes is the maximum size of the vectors in one request, in bytes. Servers accept messages of 32
	// MiB by default.
	qdrantMaxSaveBytes = 24 << 20
	// A failed connection is retried after qdrantFirstRetry, and then after increasing delays up to qdrantLastRetry.
	// After qdrantKeepAlive seconds without data, the client checks whether the server is alive.
	qdrantFirstRetry = 200 * time.Millisecond
	qdrantLastRetry  = 5 * time.Second
	qdrantKeepAlive  = 30
	// qdrantExtraHits is the number of additional hits that a query requests. If several vectors are equally near,
	// the server returns an arbitrary selection of them. With the additional hits, they can be sorted by key.
	qdrantExtraHits = 16
)

// A qdrantBackend stores the vectors of each model in a separate collection. The names of all these collections begin
// with collection.
type qdrantBackend struct {
	client     *qdrant.Client
	collection string

	// mu guards dimensions, the dimensions of the collections that are known to exist, by model.
	mu         sync.Mutex
	dimensions map[string]int
}

// openQdrant returns the backend at a qdrant:// URL, or at a qdrants:// URL with TLS. name is the server's address
// without the API key, for messages. The API key is the password in the URL, or the user name if there is no
// password. trust is the TLS configuration; nil means the system's certificates. The function does not connect yet.
// The error does not contain parts of the URL.
func openQdrant(location, collection string, trust *tls.Config) (k *qdrantBackend, name string, err error) {
	u, err := url.Parse(location)
	if err != nil || u.Hostname() == "" || u.Path != "" && u.Path != "/" || u.RawQuery != "" || u.Fragment != "" {
		return nil, "", errors.New("the URL is not valid") // the cause may quote the URL with its key
	}
	host, port, secure := u.Hostname(), qdrantPort, u.Scheme == "qdrants"
	if p := u.Port(); p != "" {
		port, _ = strconv.Atoi(p) // url.Parse has checked that the port has only digits
	}
	key, _ := u.User.Password()
	if key == "" {
		key = u.User.Username()
	}
	if key != "" && !secure && !isLoopbackHost(host) {
		return nil, "", errors.New("a key would go to another machine without TLS: write qdrants://")
	}
	name = u.Scheme + "://" + net.JoinHostPort(host, strconv.Itoa(port))
	if strings.Contains(host, ":") {
		host = "[" + host + "]" // the client appends ":" and the port
	}
	pause := backoff.DefaultConfig
	pause.BaseDelay, pause.MaxDelay = qdrantFirstRetry, qdrantLastRetry
	config := qdrant.Config{
		Host: host, Port: port, UseTLS: secure, TLSConfig: trust, PoolSize: 1, KeepAliveTime: qdrantKeepAlive,
		SkipCompatibilityCheck: true, // the check sends a request immediately, and writes to the process's log
		GrpcOptions: []grpc.DialOption{
			grpc.WithConnectParams(grpc.ConnectParams{Backoff: pause, MinConnectTimeout: qdrantLastRetry}),
			grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(qdrantMaxMessage)),
			grpc.WithDisableServiceConfig(), // which would be queried in the DNS
		},
	}
	if key != "" {
		config.GrpcOptions = append(config.GrpcOptions, grpc.WithPerRPCCredentials(qdrantAPIKey(key)))
	}
	client, err := qdrant.NewClient(&config)
	if err != nil {
		return nil, "", errors.New("the URL is not valid")
	}
	return &qdrantBackend{client: client, collection: collection, dimensions: map[string]int{}}, name, nil
}

// qdrantAPIKey adds the API key to each request. The client's own option for a key writes to the process's log.
type qdrantAPIKey string

// GetRequestMetadata returns the header with Qdrant's API key.
func (k qdrantAPIKey) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return map[string]string{"api-key": string(k)}, nil
}

// RequireTransportSecurity returns false, because the API key may be sent without TLS to a server on this machine.
// For other servers, openQdrant refuses a key without TLS.
func (qdrantAPIKey) RequireTransportSecurity() bool { return false }

func isLoopbackHost(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// Close closes the connection.
func (k *qdrantBackend) Close() error { return k.client.Close() }

// Check returns an error if the server does not answer or refuses the API key.
func (k *qdrantBackend) Check(ctx context.Context) error {
	_, err := k.client.CollectionExists(ctx, k.collection)
	return plainQdrantError(err)
}

// collectionFor returns the name of a model's collection. The name contains the permitted characters of the model's
// name, and a part of its hash. The hash distinguishes models whose names differ only in other characters.
func (k *qdrantBackend) collectionFor(model string) string {
	readable := strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z', '0' <= r && r <= '9', r == '-':
			return r
		case 'A' <= r && r <= 'Z':
			return r + 'a' - 'A'
		}
		return '-'
	}, model)
	sum := sha256.Sum256([]byte(model))
	return fmt.Sprintf("%s_%s_%s", k.collection, readable[:min(len(readable), 40)], hex.EncodeToString(sum[:4]))
}

// pointID returns the ID of a key's point: a UUID that consists of the first 16 bytes of the key.
func pointID(key index.TextKey) string {
	h := hex.EncodeToString(key[:16])
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}

func pointIDs(keys []index.TextKey) []*qdrant.PointId {
	ids := make([]*qdrant.PointId, len(keys))
	for i, key := range keys {
		ids[i] = qdrant.NewIDUUID(pointID(key))
	}
	return ids
}

func keysByPointID(keys []index.TextKey) map[string]index.TextKey {
	all := make(map[string]index.TextKey, len(keys))
	for _, key := range keys {
		all[pointID(key)] = key
	}
	return all
}

// Have returns the saved vectors of the keys, by key.
func (k *qdrantBackend) Have(ctx context.Context, model string, keys []index.TextKey) (map[index.TextKey][]float32,
	error) {
	all := map[index.TextKey][]float32{}
	for part := range slices.Chunk(keys, qdrantReadBatch) {
		points, err := k.client.Get(ctx, &qdrant.GetPoints{
			CollectionName: k.collectionFor(model), Ids: pointIDs(part), WithVectors: qdrant.NewWithVectors(true),
			WithPayload: qdrant.NewWithPayload(false),
		})
		if status.Code(err) == codes.NotFound {
			return all, nil // no vectors were ever saved
		}
		if err != nil {
			return nil, plainQdrantError(err)
		}
		known := keysByPointID(part)
		for _, p := range points {
			key, ok := known[p.GetId().GetUuid()]
			v := p.GetVectors().GetVector().GetDenseVector().GetData()
			if !ok || len(v) == 0 {
				return nil, errors.New("the server's answer does not match the request")
			}
			all[key] = v
		}
	}
	return all, nil
}

// Nearest returns the keys of the nearest vectors, nearest first.
func (k *qdrantBackend) Nearest(ctx context.Context, model string, question []float32, most int,
	among []index.TextKey) ([]index.Neighbor, error) {
	known := keysByPointID(among)
	filter := &qdrant.Filter{Must: []*qdrant.Condition{qdrant.NewHasID(pointIDs(among)...)}}
	for limit := most + qdrantExtraHits; ; limit *= 2 {
		points, err := k.client.Query(ctx, &qdrant.QueryPoints{
			CollectionName: k.collectionFor(model), Query: qdrant.NewQueryDense(question), Filter: filter,
			Limit:       new(uint64(limit)),
			Params:      &qdrant.SearchParams{Exact: new(true)},
			WithPayload: qdrant.NewWithPayload(false), WithVectors: qdrant.NewWithVectors(false),
		})
		if status.Code(err) == codes.NotFound {
			return nil, nil
		}
		if err != nil {
			return nil, k.dimensionError(ctx, model, len(question), err)
		}
		all := make([]index.Neighbor, 0, len(points))
		for _, p := range points {
			key, ok := known[p.GetId().GetUuid()]
			if !ok {
				return nil, errors.New("the server's answer does not match the request")
			}
			all = append(all, index.Neighbor{Key: key, Cosine: p.GetScore()})
		}
		slices.SortFunc(all, CompareNear)
		if len(all) < limit || all[most-1].Cosine != all[limit-1].Cosine {
			return all[:min(most, len(all))], nil
		}
	}
}

// dimensionError returns a DimensionError if a query was refused because of its dimension, or else the error
// because.
func (k *qdrantBackend) dimensionError(ctx context.Context, model string, want int, because error) error {
	if status.Code(because) == codes.InvalidArgument {
		if have, err := k.fetchDimension(ctx, model); err == nil && have != want {
			return &DimensionError{Model: model, Have: have, Want: want}
		}
	}
	return plainQdrantError(because)
}

// Keep stores vectors with one request. The server stores all of them or none.
func (k *qdrantBackend) Keep(ctx context.Context, model string, dimension int, keys []index.TextKey,
	vectors map[index.TextKey][]float32) error {
	if size := len(keys) * (4*dimension + 64); size > qdrantMaxSaveBytes {
		return fmt.Errorf("keep %d MiB, of %d: %w", size>>20, qdrantMaxSaveBytes>>20, errTooManyVectors)
	}
	err := k.upsertVectors(ctx, model, dimension, keys, vectors)
	if status.Code(err) == codes.NotFound { // another program removed the collection
		k.setDimension(model, 0)
		err = k.upsertVectors(ctx, model, dimension, keys, vectors)
	}
	return plainQdrantError(err)
}

func (k *qdrantBackend) upsertVectors(ctx context.Context, model string, dimension int, keys []index.TextKey,
	vectors map[index.TextKey][]float32) error {
	if err := k.ensureCollection(ctx, model, dimension); err != nil {
		return err
	}
	points := make([]*qdrant.PointStruct, 0, len(keys))
	for _, key := range keys {
		points = append(points, &qdrant.PointStruct{Id: qdrant.NewIDUUID(pointID(key)),
			Vectors: qdrant.NewVectorsDense(vectors[key])})
	}
	// A server older than 1.17 does not know this mode and replaces the stored vector. This does no harm, because the
	// new vector is of the same model and text.
	_, err := k.client.Upsert(ctx, &qdrant.UpsertPoints{
		CollectionName: k.collectionFor(model), Points: points, Wait: new(true),
		UpdateMode: qdrant.UpdateMode_InsertOnly.Enum(),
	})
	return err
}

// Forget deletes the model's collection.
func (k *qdrantBackend) Forget(ctx context.Context, model string) error {
	k.setDimension(model, 0)
	there, err := k.client.CollectionExists(ctx, k.collectionFor(model))
	if err == nil && there {
		err = k.client.DeleteCollection(ctx, k.collectionFor(model))
	}
	return plainQdrantError(err)
}

// ensureCollection creates the model's collection if it does not exist. If it exists with another dimension,
// ensureCollection returns a DimensionError.
func (k *qdrantBackend) ensureCollection(ctx context.Context, model string, dimension int) error {
	k.mu.Lock()
	have := k.dimensions[model]
	k.mu.Unlock()
	var err error
	if have == 0 {
		have, err = k.fetchDimension(ctx, model)
	}
	if status.Code(err) == codes.NotFound {
		made := k.client.CreateCollection(ctx, &qdrant.CreateCollection{
			CollectionName: k.collectionFor(model),
			VectorsConfig: qdrant.NewVectorsConfig(&qdrant.VectorParams{Size: uint64(dimension),
				Distance: qdrant.Distance_Cosine}),
			HnswConfig: &qdrant.HnswConfigDiff{M: new(uint64(0))}, // no index: the search is exact
		})
		if have, err = k.fetchDimension(ctx, model); err != nil { // another gateway may have created the collection meanwhile
			return errors.Join(made, err)
		}
	}
	if err != nil {
		return err
	}
	k.setDimension(model, have)
	if have != dimension {
		return &DimensionError{Model: model, Have: have, Want: dimension}
	}
	return nil
}

// setDimension caches the dimension of a model's collection; 0 removes the cached dimension.
func (k *qdrantBackend) setDimension(model string, dimension int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if dimension == 0 {
		delete(k.dimensions, model)
		return
	}
	k.dimensions[model] = dimension
}

// fetchDimension requests the dimension of a model's collection from the server.
func (k *qdrantBackend) fetchDimension(ctx context.Context, model string) (int, error) {
	info, err := k.client.GetCollectionInfo(ctx, k.collectionFor(model))
	if err != nil {
		return 0, err
	}
	params := info.GetConfig().GetParams().GetVectorsConfig().GetParams()
	if params.GetDistance() != qdrant.Distance_Cosine || params.GetSize() == 0 {
		return 0, fmt.Errorf("the collection %s is not one of ours: its distance is not Cosine", k.collectionFor(model))
	}
	return int(params.GetSize()), nil
}

// A qdrantError is an error of the server or the connection. Its text is the original text, without the additions of
// the client library.
type qdrantError struct{ err error }

func (a *qdrantError) Error() string { return status.Convert(rootCause(a.err)).Message() }
func (a *qdrantError) Unwrap() error { return a.err }

// plainQdrantError returns an error without the text that the client library adds.
func plainQdrantError(err error) error {
	if err == nil || status.Code(err) == codes.Unknown {
		return err
	}
	return &qdrantError{err}
}

// rootCause returns the innermost error of a chain.
func rootCause(err error) error {
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return err
		}
		err = inner
	}
}

// qdrantFault returns the fault code for a Qdrant error, and advice for the user.
func qdrantFault(err error) (code drawbridge.FaultCode, next string) {
	if _, ok := errors.AsType[*qdrant.QdrantResourceExhaustedError](err); ok {
		return drawbridge.RateLimited, ""
	}
	switch status.Code(err) {
	case codes.Unauthenticated, codes.PermissionDenied:
		return drawbridge.AuthFailure, "check the key in the URL"
	case codes.InvalidArgument, codes.NotFound, codes.AlreadyExists, codes.OutOfRange:
		return drawbridge.InvalidInput, ""
	case codes.ResourceExhausted:
		return drawbridge.RateLimited, ""
	case codes.Unavailable, codes.DeadlineExceeded, codes.Aborted, codes.Canceled:
		return drawbridge.Transient,
			"see that the server runs and can be reached, and that the port is the one for gRPC"
	}
	return drawbridge.ServerError, ""
}
