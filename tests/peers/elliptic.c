/* Gives baresip 1.0 a certificate of an elliptic curve, as `dtls_srtp_use_ec prime256v1` does in later versions: its library puts
   the key of each certificate that it makes for itself in place by this function of OpenSSL. */
#include <openssl/ec.h>
#include <openssl/evp.h>

int EVP_PKEY_set1_RSA(EVP_PKEY *key, struct rsa_st *rsa)
{
	EC_KEY *ec = EC_KEY_new_by_curve_name(NID_X9_62_prime256v1);

	(void)rsa;
	return ec && EC_KEY_generate_key(ec) && EVP_PKEY_assign_EC_KEY(key, ec);
}
