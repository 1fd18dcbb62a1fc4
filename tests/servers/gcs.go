// A server of Google Cloud Storage: fake-gcs-server, with tokens of a service account, and requests of the XML API
// that it lacks: conditional uploads, uploads in parts, copies, listings after a name, and errors with a code.
package main

import (
	"bytes"
	"crypto"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"encoding/xml"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync"

	"github.com/fsouza/fake-gcs-server/fakestorage"
)

type server struct {
	address string
	store   http.Handler
	key     *rsa.PublicKey
	mutex   sync.Mutex
	uploads map[string]map[int][]byte
}

func main() {
	address, keyFile := os.Args[1], os.Args[2]
	options := fakestorage.Options{NoListener: true, PublicHost: address}
	fake, err := fakestorage.NewServerWithOptions(options)
	if err != nil {
		log.Fatal(err)
	}
	text, err := os.ReadFile(keyFile)
	if err != nil {
		log.Fatal(err)
	}
	block, _ := pem.Decode(text)
	key, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil {
		log.Fatal(err)
	}
	handler := &server{address, fake.HTTPHandler(), key.(*rsa.PublicKey), sync.Mutex{}, map[string]map[int][]byte{}}
	log.Fatal(http.ListenAndServe(address, handler))
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !s.permits(r) {
		fail(w, http.StatusUnauthorized, "AuthenticationRequired")
		return
	}
	bucket, object, ok := split(r)
	if !ok {
		s.store.ServeHTTP(w, r)
		return
	}
	if s.call(http.MethodGet, "/storage/v1/b/"+url.PathEscape(bucket), nil).Code != http.StatusOK {
		fail(w, http.StatusNotFound, "NoSuchBucket")
		return
	}
	query := r.URL.Query()
	switch id, source := query.Get("uploadId"), r.Header.Get("X-Goog-Copy-Source"); {
	case r.Method == http.MethodPost && query.Has("uploads"):
		s.begin(w)
	case id != "":
		s.part(w, r, bucket, object, id)
	case r.Method == http.MethodPut && source != "":
		s.copy(w, bucket, object, source)
	case r.Method == http.MethodPut:
		content, err := io.ReadAll(r.Body)
		if err == nil {
			s.put(w, r, bucket, object, content)
		}
	case r.Method == http.MethodGet && object == "":
		r.Host = s.address
		s.list(w, r, query.Get("start-after"))
	default:
		r.Host = s.address
		s.store.ServeHTTP(w, r)
	}
}

// permits returns whether a request has a token that the service account has signed.
func (s *server) permits(r *http.Request) bool {
	parts := strings.Split(strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "), ".")
	if len(parts) != 3 {
		return false
	}
	signature, err := base64.RawURLEncoding.DecodeString(parts[2])
	digest := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
	return err == nil && rsa.VerifyPKCS1v15(s.key, crypto.SHA256, digest[:], signature) == nil
}

// split returns the bucket and the object of a request of the XML API.
func split(r *http.Request) (string, string, bool) {
	bucket, object, _ := strings.Cut(strings.TrimPrefix(r.URL.EscapedPath(), "/"), "/")
	for _, other := range []string{"storage", "upload", "download", "batch"} {
		if bucket == other {
			return "", "", false
		}
	}
	bucket, _ = url.PathUnescape(bucket)
	object, err := url.PathUnescape(object)
	return bucket, object, err == nil
}

func (s *server) put(w http.ResponseWriter, r *http.Request, bucket, object string, content []byte) {
	query := url.Values{"uploadType": {"media"}, "name": {object}}
	if generation := r.Header.Get("X-Goog-If-Generation-Match"); generation != "" {
		query.Set("ifGenerationMatch", generation)
	}
	path := "/upload/storage/v1/b/" + url.PathEscape(bucket) + "/o?" + query.Encode()
	s.answer(w, s.call(http.MethodPost, path, content), "CompleteMultipartUploadResult")
}

func (s *server) copy(w http.ResponseWriter, bucket, object, source string) {
	from, name, _ := strings.Cut(source, "/")
	name, _ = url.PathUnescape(name)
	path := fmt.Sprintf("/storage/v1/b/%s/o/%s/copyTo/b/%s/o/%s", from, url.PathEscape(name),
		url.PathEscape(bucket), url.PathEscape(object))
	s.answer(w, s.call(http.MethodPost, path, []byte("{}")), "CopyObjectResult")
}

func (s *server) begin(w http.ResponseWriter) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	id := strconv.Itoa(len(s.uploads))
	s.uploads[id] = map[int][]byte{}
	reply(w, "InitiateMultipartUploadResult", "UploadId", id)
}

// part stores a part of an upload, or completes or discards the upload.
func (s *server) part(w http.ResponseWriter, r *http.Request, bucket, object, id string) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	content, err := io.ReadAll(r.Body)
	parts := s.uploads[id]
	if err != nil || parts == nil {
		fail(w, http.StatusNotFound, "NoSuchUpload")
		return
	}
	switch r.Method {
	case http.MethodPut:
		number, _ := strconv.Atoi(r.URL.Query().Get("partNumber"))
		parts[number] = content
		w.Header().Set("ETag", fmt.Sprintf("\"%d\"", number))
	case http.MethodPost:
		numbers := make([]int, 0, len(parts))
		for number := range parts {
			numbers = append(numbers, number)
		}
		sort.Ints(numbers)
		whole := bytes.Buffer{}
		for _, number := range numbers {
			whole.Write(parts[number])
		}
		s.put(w, r, bucket, object, whole.Bytes())
	}
	if r.Method != http.MethodPut {
		s.uploads[id] = nil
	}
}

// list lists the objects whose names are greater than a name. Times have milliseconds, as only those of listings.
func (s *server) list(w http.ResponseWriter, r *http.Request, name string) {
	recorder := httptest.NewRecorder()
	s.store.ServeHTTP(recorder, r)
	var found fakestorage.ListBucketResult
	if err := xml.Unmarshal(recorder.Body.Bytes(), &found); err != nil {
		fail(w, http.StatusInternalServerError, "InternalError")
		return
	}
	found.Contents = slices.DeleteFunc(found.Contents, func(each fakestorage.Contents) bool { return each.Key <= name })
	for number := range found.Contents {
		found.Contents[number].LastModified = strings.Replace(found.Contents[number].LastModified, "Z", ".837Z", 1)
	}
	if err := xml.NewEncoder(w).Encode(found); err != nil {
		log.Print(err)
	}
}

// call sends a request of the JSON API to the store.
func (s *server) call(method, path string, content []byte) *httptest.ResponseRecorder {
	recorder := httptest.NewRecorder()
	s.store.ServeHTTP(recorder, httptest.NewRequest(method, path, bytes.NewReader(content)))
	return recorder
}

// answer converts an answer of the JSON API with an object.
func (s *server) answer(w http.ResponseWriter, found *httptest.ResponseRecorder, name string) {
	codes := map[int]string{http.StatusNotFound: "NoSuchKey", http.StatusPreconditionFailed: "PreconditionFailed"}
	if found.Code != http.StatusOK {
		fail(w, found.Code, codes[found.Code])
		return
	}
	var object struct{ Etag, Generation string }
	if err := json.Unmarshal(found.Body.Bytes(), &object); err != nil {
		fail(w, http.StatusInternalServerError, "InternalError")
		return
	}
	w.Header().Set("ETag", fmt.Sprintf("%q", object.Etag))
	w.Header().Set("X-Goog-Generation", object.Generation)
	reply(w, name, "ETag", object.Etag)
}

func reply(w http.ResponseWriter, name, field, value string) {
	fmt.Fprintf(w, "<%s><%s>%s</%s></%s>", name, field, value, field, name)
}

func fail(w http.ResponseWriter, status int, code string) {
	w.WriteHeader(status)
	fmt.Fprintf(w, "<Error><Code>%s</Code><Message>%s</Message></Error>", code, http.StatusText(status))
}
