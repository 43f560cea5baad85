// Package qdrant keeps vectors on a Qdrant server, which it speaks to by gRPC.
//
// It promises that the nearest are the nearest, since it has the server look at each vector; that collections are made when
// something is first kept; and that what two gateways keep at once is kept once. Its errors have no key in them. A model has
// a collection of its own, with a name that people can read; a text's point is named by the first 16 bytes of its key.
package qdrant

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
	"github.com/drawbridge-mcp/drawbridge/index"
	"github.com/drawbridge-mcp/drawbridge/store/vector"
	"github.com/qdrant/go-client/qdrant"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

const (
	// defaultPort is Qdrant's for gRPC.
	defaultPort = 6334
	// page is how many vectors one answer holds, maxMessage the most bytes of one.
	page, maxMessage = 512, 64 << 20
	// maxKeep is the most bytes of vectors that are kept at once: a server takes messages of 32 MiB, where nobody says otherwise.
	maxKeep = 24 << 20
	// A connection that failed is tried again after retryAtFirst, and later and later, up to retryAtLatest; keepAlive is how many seconds it is silent before
	// it looks whether the server is there.
	retryAtFirst  = 200 * time.Millisecond
	retryAtLatest = 5 * time.Second
	keepAlive     = 30
	// beyond is how many more than wanted are asked for: of those that are equally near the server takes any.
	beyond = 16
)

// A Keeper keeps vectors in collections whose names begin alike.
type Keeper struct {
	client     *qdrant.Client
	collection string

	// mu guards made: the dimensions of the collections that are known to be there, by model.
	mu   sync.Mutex
	made map[string]int
}

// Open gives the keeper at a qdrant:// URL, or a qdrants:// one, which is with TLS: nil trusts whom the system trusts. A user
// or password in the URL is the API key. It also gives the name of the place for people. It connects to nothing yet. The error
// has nothing of the URL in it.
func Open(location, collection string, trust *tls.Config) (k *Keeper, name string, err error) {
	u, err := url.Parse(location)
	if err != nil || u.Hostname() == "" || u.Path != "" && u.Path != "/" || u.RawQuery != "" || u.Fragment != "" {
		return nil, "", errors.New("the URL is not valid") // the cause may quote it, key and all
	}
	host, port, secure := u.Hostname(), defaultPort, u.Scheme == "qdrants"
	if p := u.Port(); p != "" {
		port, _ = strconv.Atoi(p) // url.Parse has seen that they are digits
	}
	key, _ := u.User.Password()
	if key == "" {
		key = u.User.Username()
	}
	if key != "" && !secure && !loopback(host) {
		return nil, "", errors.New("a key would go to another machine without TLS: write qdrants://")
	}
	name = u.Scheme + "://" + net.JoinHostPort(host, strconv.Itoa(port))
	if strings.Contains(host, ":") {
		host = "[" + host + "]" // it is put before a port as it is
	}
	pause := backoff.DefaultConfig
	pause.BaseDelay, pause.MaxDelay = retryAtFirst, retryAtLatest
	config := qdrant.Config{
		Host: host, Port: port, UseTLS: secure, TLSConfig: trust, PoolSize: 1, KeepAliveTime: keepAlive,
		SkipCompatibilityCheck: true, // it asks the server at once, and writes a log of its own
		GrpcOptions: []grpc.DialOption{
			grpc.WithConnectParams(grpc.ConnectParams{Backoff: pause, MinConnectTimeout: retryAtLatest}),
			grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage)),
			grpc.WithDisableServiceConfig(), // which is looked for in the DNS
		},
	}
	if key != "" {
		config.GrpcOptions = append(config.GrpcOptions, grpc.WithPerRPCCredentials(apiKey(key)))
	}
	client, err := qdrant.NewClient(&config)
	if err != nil {
		return nil, "", errors.New("the URL is not valid")
	}
	return &Keeper{client: client, collection: collection, made: map[string]int{}}, name, nil
}

// apiKey goes with each request. The client's own way to send one writes to the log of the process.
type apiKey string

// GetRequestMetadata gives the header that Qdrant reads.
func (k apiKey) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return map[string]string{"api-key": string(k)}, nil
}

// RequireTransportSecurity is false for keys that do not leave the machine: Open has seen to that.
func (apiKey) RequireTransportSecurity() bool { return false }

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// Close closes the connection.
func (k *Keeper) Close() error { return k.client.Close() }

// Check says whether the server answers, and lets us in.
func (k *Keeper) Check(ctx context.Context) error {
	_, err := k.client.CollectionExists(ctx, k.collection)
	return said(err)
}

// of names the collection of a model: what of the model's name may stand there, and enough of its hash to tell it from others.
func (k *Keeper) of(model string) string {
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

// uuidOf names the point of a key.
func uuidOf(key index.Key) string {
	h := hex.EncodeToString(key[:16])
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}

func idsOf(keys []index.Key) []*qdrant.PointId {
	ids := make([]*qdrant.PointId, len(keys))
	for i, key := range keys {
		ids[i] = qdrant.NewIDUUID(uuidOf(key))
	}
	return ids
}

func byUUID(keys []index.Key) map[string]index.Key {
	all := make(map[string]index.Key, len(keys))
	for _, key := range keys {
		all[uuidOf(key)] = key
	}
	return all
}

// Have gives those of the vectors that are kept.
func (k *Keeper) Have(ctx context.Context, model string, keys []index.Key) (map[index.Key][]float32, error) {
	all := map[index.Key][]float32{}
	for part := range slices.Chunk(keys, page) {
		points, err := k.client.Get(ctx, &qdrant.GetPoints{
			CollectionName: k.of(model), Ids: idsOf(part), WithVectors: qdrant.NewWithVectors(true), WithPayload: qdrant.NewWithPayload(false),
		})
		if status.Code(err) == codes.NotFound {
			return all, nil // nothing was ever kept
		}
		if err != nil {
			return nil, said(err)
		}
		known := byUUID(part)
		for _, p := range points {
			key, ok := known[p.GetId().GetUuid()]
			v := p.GetVectors().GetVector().GetDenseVector().GetData()
			if !ok || len(v) == 0 {
				return nil, errors.New("it answered with something else than what was asked for")
			}
			all[key] = v
		}
	}
	return all, nil
}

// Nearest gives the keys whose vectors lie nearest, the nearest first.
func (k *Keeper) Nearest(ctx context.Context, model string, question []float32, most int, among []index.Key) ([]index.Near, error) {
	known := byUUID(among)
	filter := &qdrant.Filter{Must: []*qdrant.Condition{qdrant.NewHasID(idsOf(among)...)}}
	for limit := most + beyond; ; limit *= 2 {
		points, err := k.client.Query(ctx, &qdrant.QueryPoints{
			CollectionName: k.of(model), Query: qdrant.NewQueryDense(question), Filter: filter, Limit: new(uint64(limit)),
			Params:      &qdrant.SearchParams{Exact: new(true)},
			WithPayload: qdrant.NewWithPayload(false), WithVectors: qdrant.NewWithVectors(false),
		})
		if status.Code(err) == codes.NotFound {
			return nil, nil
		}
		if err != nil {
			return nil, k.otherDimension(ctx, model, len(question), err)
		}
		all := make([]index.Near, 0, len(points))
		for _, p := range points {
			key, ok := known[p.GetId().GetUuid()]
			if !ok {
				return nil, errors.New("it answered with something else than what was asked for")
			}
			all = append(all, index.Near{Key: key, Cosine: p.GetScore()})
		}
		slices.SortFunc(all, vector.Compare)
		if len(all) < limit || all[most-1].Cosine != all[limit-1].Cosine {
			return all[:min(most, len(all))], nil
		}
	}
}

// otherDimension says what a refused question comes from.
func (k *Keeper) otherDimension(ctx context.Context, model string, want int, because error) error {
	if status.Code(because) == codes.InvalidArgument {
		if have, err := k.dimension(ctx, model); err == nil && have != want {
			return &vector.DimensionError{Model: model, Have: have, Want: want}
		}
	}
	return said(because)
}

// Keep keeps vectors with one request, which the server carries out whole or not at all.
func (k *Keeper) Keep(ctx context.Context, model string, dimension int, keys []index.Key, vectors map[index.Key][]float32) error {
	if size := len(keys) * (4*dimension + 64); size > maxKeep {
		return fmt.Errorf("keep %d MiB, of %d: %w", size>>20, maxKeep>>20, vector.ErrTooMany)
	}
	err := k.keep(ctx, model, dimension, keys, vectors)
	if status.Code(err) == codes.NotFound { // somebody removed the collection
		k.note(model, 0)
		err = k.keep(ctx, model, dimension, keys, vectors)
	}
	return said(err)
}

func (k *Keeper) keep(ctx context.Context, model string, dimension int, keys []index.Key, vectors map[index.Key][]float32) error {
	if err := k.ensure(ctx, model, dimension); err != nil {
		return err
	}
	points := make([]*qdrant.PointStruct, 0, len(keys))
	for _, key := range keys {
		points = append(points, &qdrant.PointStruct{Id: qdrant.NewIDUUID(uuidOf(key)), Vectors: qdrant.NewVectorsDense(vectors[key])})
	}
	// A server before 1.17 does not know the mode, and puts the vector of the same model and text in the place of the one there.
	_, err := k.client.Upsert(ctx, &qdrant.UpsertPoints{
		CollectionName: k.of(model), Points: points, Wait: new(true), UpdateMode: qdrant.UpdateMode_InsertOnly.Enum(),
	})
	return err
}

// Forget removes the model's collection.
func (k *Keeper) Forget(ctx context.Context, model string) error {
	k.note(model, 0)
	there, err := k.client.CollectionExists(ctx, k.of(model))
	if err == nil && there {
		err = k.client.DeleteCollection(ctx, k.of(model))
	}
	return said(err)
}

// ensure makes the model's collection where there is none, and sees that it is of the dimension.
func (k *Keeper) ensure(ctx context.Context, model string, dimension int) error {
	k.mu.Lock()
	have := k.made[model]
	k.mu.Unlock()
	var err error
	if have == 0 {
		have, err = k.dimension(ctx, model)
	}
	if status.Code(err) == codes.NotFound {
		made := k.client.CreateCollection(ctx, &qdrant.CreateCollection{
			CollectionName: k.of(model),
			VectorsConfig:  qdrant.NewVectorsConfig(&qdrant.VectorParams{Size: uint64(dimension), Distance: qdrant.Distance_Cosine}),
			HnswConfig:     &qdrant.HnswConfigDiff{M: new(uint64(0))}, // no index: the search is exact
		})
		if have, err = k.dimension(ctx, model); err != nil { // another gateway may have been faster
			return errors.Join(made, err)
		}
	}
	if err != nil {
		return err
	}
	k.note(model, have)
	if have != dimension {
		return &vector.DimensionError{Model: model, Have: have, Want: dimension}
	}
	return nil
}

// note remembers the dimension of a model's collection; 0 forgets it.
func (k *Keeper) note(model string, dimension int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if dimension == 0 {
		delete(k.made, model)
		return
	}
	k.made[model] = dimension
}

// dimension asks for that of a model's collection.
func (k *Keeper) dimension(ctx context.Context, model string) (int, error) {
	info, err := k.client.GetCollectionInfo(ctx, k.of(model))
	if err != nil {
		return 0, err
	}
	params := info.GetConfig().GetParams().GetVectorsConfig().GetParams()
	if params.GetDistance() != qdrant.Distance_Cosine || params.GetSize() == 0 {
		return 0, fmt.Errorf("the collection %s is not one of ours: its distance is not Cosine", k.of(model))
	}
	return int(params.GetSize()), nil
}

// An answer is an error of the server or of the way to it, in its own words.
type answer struct{ err error }

func (a *answer) Error() string { return status.Convert(root(a.err)).Message() }
func (a *answer) Unwrap() error { return a.err }

// said leaves out what the client says around an error.
func said(err error) error {
	if err == nil || status.Code(err) == codes.Unknown {
		return err
	}
	return &answer{err}
}

// root is the innermost error.
func root(err error) error {
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return err
		}
		err = inner
	}
}

// Fault says what an error of a keeper's means: what can be done about it, and by whom.
func Fault(err error) (code drawbridge.FaultCode, next string) {
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
		return drawbridge.Transient, "see that the server runs and can be reached, and that the port is the one for gRPC"
	}
	return drawbridge.ServerError, ""
}
