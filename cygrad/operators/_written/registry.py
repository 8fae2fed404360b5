"""Written by `python -m building.operators`: where each operator is declared, read when a name is first asked for."""

FUNCTIONS: dict[str, str] = {
    "cygrad.operators.calculus":
        "trapezoid trapz cumulative_trapezoid gradient",
    "cygrad.operators.combinatorics":
        "combinations cartesian_prod",
    "cygrad.operators.comparison":
        "isclose allclose equal",
    "cygrad.operators.conjugation":
        "conj resolve_conj resolve_neg is_conj is_neg view_as_real view_as_real_copy view_as_complex view_as_complex_copy real "
        "imag complex polar",
    "cygrad.operators.convolutions":
        "conv1d conv2d conv3d conv_tbc conv_transpose1d conv_transpose2d conv_transpose3d convolution",
    "cygrad.operators.copies":
        "clone detach detach_copy detach_ copy_ fill_ fill alias_copy zero_ resize_ resize_as_ set_",
    "cygrad.operators.covariance":
        "cov corrcoef",
    "cygrad.operators.determinants":
        "det slogdet logdet",
    "cygrad.operators.diagonals":
        "tril tril_ triu triu_ diagonal diagonal_copy fill_diagonal_ diag_embed diag diagflat diagonal_scatter select_scatter "
        "slice_scatter",
    "cygrad.operators.distances":
        "cdist pdist",
    "cygrad.operators.exponentials":
        "logsumexp softmax log_softmax",
    "cygrad.operators.exponents":
        "frexp ldexp ldexp_ float_power float_power_",
    "cygrad.operators.factorizations":
        "cholesky lu lu_unpack lu_solve",
    "cygrad.operators.gamma_functions":
        "igamma igamma_ igammac igammac_",
    "cygrad.operators.grids":
        "affine_grid_generator grid_sampler grid_sampler_2d grid_sampler_3d",
    "cygrad.operators.hashing":
        "hash_tensor",
    "cygrad.operators.histograms":
        "bincount histc histogram histogramdd",
    "cygrad.operators.indexing":
        "select select_copy narrow narrow_copy slice slice_copy",
    "cygrad.operators.joining":
        "cat concat concatenate stack hstack vstack row_stack dstack column_stack meshgrid block_diag",
    "cygrad.operators.least_squares":
        "pinverse",
    "cygrad.operators.linear_maps":
        "bilinear",
    "cygrad.operators.lookup":
        "gather index_select take_along_dim take nonzero argwhere nonzero_static unravel_index",
    "cygrad.operators.low_rank":
        "svd_lowrank pca_lowrank",
    "cygrad.operators.masking":
        "where masked_fill masked_fill_ masked_select masked_scatter masked_scatter_",
    "cygrad.operators.matrix_functions":
        "matrix_exp matrix_power chain_matmul vander",
    "cygrad.operators.matrix_norms":
        "norm nuclear_norm",
    "cygrad.operators.max_pooling":
        "max_pool1d_with_indices max_pool1d max_pool2d max_pool3d adaptive_max_pool1d",
    "cygrad.operators.new_tensors":
        "empty_like zeros_like ones_like full_like",
    "cygrad.operators.normalization":
        "layer_norm rms_norm group_norm native_layer_norm native_group_norm native_batch_norm",
    "cygrad.operators.norms":
        "dist renorm renorm_",
    "cygrad.operators.orthogonal":
        "qr geqrf orgqr ormqr",
    "cygrad.operators.padding":
        "constant_pad_nd",
    "cygrad.operators.pooling":
        "avg_pool1d adaptive_avg_pool1d",
    "cygrad.operators.products":
        "matmul mm bmm mv inner trace addmm addmm_ baddbmm baddbmm_ addmv addmv_ addr addr_ addbmm addbmm_ kron tensordot einsum",
    "cygrad.operators.python_functions":
        "apply_ map_ map2_",
    "cygrad.operators.quantiles":
        "quantile nanquantile",
    "cygrad.operators.random_draws":
        "multinomial poisson binomial",
    "cygrad.operators.random_fills":
        "uniform_ normal_ log_normal_ exponential_ cauchy_ geometric_ bernoulli_ random_ uniform log_normal exponential cauchy "
        "geometric",
    "cygrad.operators.rearranging":
        "tile repeat_interleave flip fliplr flipud rot90 roll",
    "cygrad.operators.reductions":
        "max min aminmax argmax argmin count_nonzero sum nansum mean prod amax amin any all",
    "cygrad.operators.scans":
        "cumsum cumsum_ logcumsumexp cumprod cumprod_ cummax cummin diff",
    "cygrad.operators.scattering":
        "scatter scatter_ scatter_add scatter_add_ scatter_reduce scatter_reduce_ index_add index_add_ index_copy index_copy_ "
        "index_fill index_fill_ index_reduce index_reduce_ put put_ index_put index_put_",
    "cygrad.operators.segments":
        "segment_reduce",
    "cygrad.operators.shapes":
        "view_copy reshape flatten unflatten ravel squeeze squeeze_copy squeeze_ unsqueeze unsqueeze_copy unsqueeze_ atleast_1d "
        "atleast_2d atleast_3d permute permute_copy transpose transpose_copy transpose_ swapdims swapdims_ swapaxes swapaxes_ t "
        "t_copy t_ adjoint movedim moveaxis expand_copy broadcast_to broadcast_tensors broadcast_shapes",
    "cygrad.operators.shuffling":
        "pixel_shuffle pixel_unshuffle channel_shuffle native_channel_shuffle",
    "cygrad.operators.similarity":
        "cosine_similarity pairwise_distance",
    "cygrad.operators.solving":
        "triangular_solve inverse cholesky_solve cholesky_inverse",
    "cygrad.operators.sorting":
        "sort argsort msort topk kthvalue median nanmedian searchsorted bucketize isin unique unique_consecutive",
    "cygrad.operators.sparse_tensors":
        "indices_copy values_copy crow_indices_copy col_indices_copy ccol_indices_copy row_indices_copy",
    "cygrad.operators.special_functions":
        "polygamma polygamma_ mvlgamma mvlgamma_",
    "cygrad.operators.spectra":
        "svd",
    "cygrad.operators.spectrograms":
        "stft istft",
    "cygrad.operators.splitting":
        "split split_copy split_with_sizes split_with_sizes_copy chunk unbind unbind_copy tensor_split hsplit vsplit dsplit "
        "unsafe_split unsafe_split_with_sizes unsafe_chunk",
    "cygrad.operators.statistics":
        "var std var_mean std_mean nanmean mode",
    "cygrad.operators.variants":
        "clamp clip clamp_ clip_ pow nan_to_num nan_to_num_ round round_ logit logit_ prelu positive rsub",
    "cygrad.operators.vectors":
        "dot outer ger vdot cross",
    "cygrad.operators.window_functions":
        "bartlett_window blackman_window hann_window hamming_window kaiser_window",
    "cygrad.operators.windows":
        "unfold_copy as_strided as_strided_copy as_strided_ as_strided_scatter",
}

LINALG: dict[str, str] = {
    "cygrad.operators.banded_systems":
        "linalg_solve_banded linalg_solveh_banded",
    "cygrad.operators.determinants":
        "linalg_det linalg_slogdet",
    "cygrad.operators.diagonals":
        "linalg_diagonal",
    "cygrad.operators.factorizations":
        "linalg_cholesky linalg_cholesky_ex linalg_lu_factor_ex linalg_lu_factor linalg_lu linalg_lu_solve linalg_ldl_factor_ex "
        "linalg_ldl_factor linalg_ldl_solve",
    "cygrad.operators.least_squares":
        "linalg_pinv linalg_lstsq",
    "cygrad.operators.matrix_equations":
        "linalg_solve_sylvester linalg_sqrtm",
    "cygrad.operators.matrix_functions":
        "linalg_matrix_exp linalg_matrix_power linalg_multi_dot linalg_vander",
    "cygrad.operators.matrix_norms":
        "linalg_matrix_norm linalg_norm linalg_cond linalg_matrix_rank",
    "cygrad.operators.norms":
        "linalg_vector_norm",
    "cygrad.operators.orthogonal":
        "linalg_qr linalg_householder_product",
    "cygrad.operators.products":
        "linalg_matmul",
    "cygrad.operators.solving":
        "linalg_solve_triangular linalg_solve_ex linalg_solve linalg_tensorsolve linalg_inv_ex linalg_inv linalg_tensorinv",
    "cygrad.operators.spectra":
        "linalg_eigh linalg_eigvalsh linalg_eig linalg_eigvals linalg_svd linalg_svdvals",
    "cygrad.operators.vectors":
        "linalg_cross linalg_vecdot",
}

FFT: dict[str, str] = {
    "cygrad.operators.fourier":
        "fft_fft fft_ifft fft_rfft fft_irfft fft_hfft fft_ihfft fft_fftn fft_ifftn fft_rfftn fft_irfftn fft_hfftn fft_ihfftn "
        "fft_fft2 fft_ifft2 fft_rfft2 fft_irfft2 fft_hfft2 fft_ihfft2 fft_fftshift fft_ifftshift fft_fftfreq fft_rfftfreq",
}

SPECIAL: dict[str, str] = {
    "cygrad.operators.bessel_functions":
        "special_bessel_j0 special_j0 special_bessel_j1 special_j1 special_bessel_y0 special_y0 special_bessel_y1 special_y1 "
        "special_modified_bessel_k0 special_k0 special_modified_bessel_k1 special_k1 special_scaled_modified_bessel_k0 "
        "special_k0e special_scaled_modified_bessel_k1 special_k1e special_jv special_jn special_yv special_yn special_iv "
        "special_ive special_kv special_kn special_airy_ai special_spherical_bessel_j0",
    "cygrad.operators.exponentials":
        "special_logsumexp special_softmax special_log_softmax",
    "cygrad.operators.gamma_functions":
        "special_gammainc special_gammaincc special_zeta special_gamma special_rgamma special_gammasgn special_beta "
        "special_betaln special_betainc special_erfcinv",
    "cygrad.operators.polynomials":
        "special_chebyshev_polynomial_t special_chebyshev_polynomial_u special_chebyshev_polynomial_v "
        "special_chebyshev_polynomial_w special_shifted_chebyshev_polynomial_t special_shifted_chebyshev_polynomial_u "
        "special_shifted_chebyshev_polynomial_v special_shifted_chebyshev_polynomial_w special_hermite_polynomial_h "
        "special_hermite_polynomial_he special_laguerre_polynomial_l special_legendre_polynomial_p",
    "cygrad.operators.special_functions":
        "special_polygamma special_multigammaln",
    "cygrad.operators.variants":
        "special_round special_logit",
    "cygrad.operators.elementwise":
        "special_expm1 special_exp2 special_log1p special_xlogy special_sinc special_erf special_erfc special_ndtr special_expit "
        "special_gammaln special_digamma special_psi special_erfinv special_ndtri special_erfcx special_log_ndtr special_entr "
        "special_xlog1py special_i0 special_modified_bessel_i0 special_i0e special_i1 special_modified_bessel_i1 special_i1e",
}

SIGNAL_WINDOWS: dict[str, str] = {
    "cygrad.operators.window_functions":
        "signal_windows_bartlett signal_windows_blackman signal_windows_hann signal_windows_hamming signal_windows_nuttall "
        "signal_windows_general_hamming signal_windows_general_cosine signal_windows_cosine signal_windows_gaussian "
        "signal_windows_kaiser signal_windows_exponential",
}

NN_FUNCTIONAL: dict[str, str] = {
    "cygrad.operators.class_losses":
        "nn_functional_cross_entropy nn_functional_nll_loss nn_functional_multi_margin_loss nn_functional_multilabel_margin_loss "
        "nn_functional_multilabel_soft_margin_loss",
    "cygrad.operators.convolutions":
        "nn_functional_conv1d nn_functional_conv2d nn_functional_conv3d nn_functional_conv_tbc nn_functional_conv_transpose1d "
        "nn_functional_conv_transpose2d nn_functional_conv_transpose3d",
    "cygrad.operators.distances":
        "nn_functional_pdist",
    "cygrad.operators.dropping":
        "nn_functional_dropout nn_functional_dropout1d nn_functional_dropout2d nn_functional_dropout3d "
        "nn_functional_alpha_dropout nn_functional_feature_alpha_dropout nn_functional_rrelu nn_functional_rrelu_ "
        "nn_functional_gumbel_softmax",
    "cygrad.operators.embeddings":
        "nn_functional_one_hot nn_functional_embedding nn_functional_embedding_bag",
    "cygrad.operators.exponentials":
        "nn_functional_softmax nn_functional_softmin nn_functional_log_softmax",
    "cygrad.operators.fractional_pooling":
        "nn_functional_fractional_max_pool2d_with_indices nn_functional_fractional_max_pool2d "
        "nn_functional_fractional_max_pool3d_with_indices nn_functional_fractional_max_pool3d",
    "cygrad.operators.grids":
        "nn_functional_affine_grid nn_functional_grid_sample",
    "cygrad.operators.interpolation":
        "nn_functional_interpolate nn_functional_upsample nn_functional_upsample_nearest nn_functional_upsample_bilinear",
    "cygrad.operators.linear_maps":
        "nn_functional_linear nn_functional_bilinear nn_functional_linear_cross_entropy "
        "nn_functional_scaled_dot_product_attention",
    "cygrad.operators.losses":
        "nn_functional_mse_loss nn_functional_l1_loss nn_functional_smooth_l1_loss nn_functional_huber_loss "
        "nn_functional_binary_cross_entropy nn_functional_binary_cross_entropy_with_logits nn_functional_soft_margin_loss "
        "nn_functional_kl_div nn_functional_gaussian_nll_loss nn_functional_poisson_nll_loss",
    "cygrad.operators.margin_losses":
        "nn_functional_margin_ranking_loss nn_functional_hinge_embedding_loss nn_functional_cosine_embedding_loss "
        "nn_functional_triplet_margin_loss nn_functional_triplet_margin_with_distance_loss",
    "cygrad.operators.max_pooling":
        "nn_functional_max_pool1d_with_indices nn_functional_max_pool1d nn_functional_max_pool2d_with_indices "
        "nn_functional_max_pool2d nn_functional_max_pool3d_with_indices nn_functional_max_pool3d "
        "nn_functional_adaptive_max_pool1d_with_indices nn_functional_adaptive_max_pool1d "
        "nn_functional_adaptive_max_pool2d_with_indices nn_functional_adaptive_max_pool2d "
        "nn_functional_adaptive_max_pool3d_with_indices nn_functional_adaptive_max_pool3d nn_functional_lp_pool1d "
        "nn_functional_lp_pool2d nn_functional_lp_pool3d nn_functional_max_unpool1d nn_functional_max_unpool2d "
        "nn_functional_max_unpool3d",
    "cygrad.operators.normalization":
        "nn_functional_layer_norm nn_functional_rms_norm nn_functional_group_norm nn_functional_batch_norm "
        "nn_functional_instance_norm nn_functional_local_response_norm",
    "cygrad.operators.padding":
        "nn_functional_pad",
    "cygrad.operators.patches":
        "nn_functional_unfold nn_functional_fold",
    "cygrad.operators.pooling":
        "nn_functional_avg_pool1d nn_functional_avg_pool2d nn_functional_avg_pool3d nn_functional_adaptive_avg_pool1d "
        "nn_functional_adaptive_avg_pool2d nn_functional_adaptive_avg_pool3d",
    "cygrad.operators.shuffling":
        "nn_functional_pixel_shuffle nn_functional_pixel_unshuffle nn_functional_channel_shuffle "
        "nn_functional_native_channel_shuffle",
    "cygrad.operators.similarity":
        "nn_functional_normalize nn_functional_cosine_similarity nn_functional_pairwise_distance",
    "cygrad.operators.variants":
        "nn_functional_prelu nn_functional_glu",
    "cygrad.operators.elementwise":
        "nn_functional_tanh nn_functional_tanh_ nn_functional_sigmoid nn_functional_sigmoid_ nn_functional_softplus "
        "nn_functional_softplus_ nn_functional_relu nn_functional_relu_ nn_functional_gelu nn_functional_gelu_ nn_functional_silu "
        "nn_functional_silu_ nn_functional_logsigmoid nn_functional_logsigmoid_ nn_functional_elu nn_functional_elu_ "
        "nn_functional_selu nn_functional_selu_ nn_functional_celu nn_functional_celu_ nn_functional_leaky_relu "
        "nn_functional_leaky_relu_ nn_functional_hardtanh nn_functional_hardtanh_ nn_functional_relu6 nn_functional_relu6_ "
        "nn_functional_softsign nn_functional_softsign_ nn_functional_mish nn_functional_mish_ nn_functional_hardsigmoid "
        "nn_functional_hardsigmoid_ nn_functional_hardswish nn_functional_hardswish_ nn_functional_softshrink "
        "nn_functional_softshrink_ nn_functional_hardshrink nn_functional_hardshrink_ nn_functional_tanhshrink "
        "nn_functional_tanhshrink_ nn_functional_threshold nn_functional_threshold_",
}

MPI: dict[str, str] = {
    "cygrad.operators.collectives":
        "mpi_allreduce mpi_total mpi_replicate mpi_reduce mpi_reduce_scatter mpi_bcast mpi_gather mpi_allgather mpi_scatter "
        "mpi_alltoall mpi_gatherv mpi_allgatherv mpi_scatterv mpi_alltoallv",
    "cygrad.operators.halos":
        "mpi_halo_exchange mpi_halo_add",
    "cygrad.operators.pairs":
        "mpi_sendrecv mpi_send mpi_recv",
    "cygrad.operators.pending_messages":
        "mpi_iallreduce mpi_isend mpi_irecv",
}

METHODS: dict[str, str] = {
    "cygrad.operators.bands":
        "_banded",
    "cygrad.operators.class_losses":
        "_at_classes _to_classes _softmax_loss_gradient _softmax_loss",
    "cygrad.operators.comparison":
        "isclose allclose equal",
    "cygrad.operators.conjugation":
        "conj resolve_conj resolve_neg is_conj is_neg view_as_real view_as_complex",
    "cygrad.operators.convolutions":
        "_convolve _spread_kernels _sum_kernels",
    "cygrad.operators.copies":
        "clone contiguous _convert detach detach_ copy_ fill_ zero_ type_as resize_ resize_as_ set_",
    "cygrad.operators.covariance":
        "cov corrcoef",
    "cygrad.operators.determinants":
        "det slogdet logdet",
    "cygrad.operators.diagonals":
        "tril tril_ triu triu_ diagonal fill_diagonal_ diag_embed diag diagflat diagonal_scatter select_scatter slice_scatter",
    "cygrad.operators.distances":
        "_pull _euclidean_dist _products_of_pairs _pull_pairs _pair_distances",
    "cygrad.operators.embeddings":
        "_with_gradient_times _rows_with_sparse_gradient",
    "cygrad.operators.exponentials":
        "logsumexp softmax log_softmax",
    "cygrad.operators.exponents":
        "frexp ldexp ldexp_ float_power float_power_",
    "cygrad.operators.factorizations":
        "cholesky lu lu_solve",
    "cygrad.operators.fourier":
        "_fft_c2c _fft_r2c _fft_c2r",
    "cygrad.operators.gamma_functions":
        "igamma igamma_ igammac igammac_",
    "cygrad.operators.grids":
        "_read_at_points _spread_from_points _slopes_at_points",
    "cygrad.operators.hashing":
        "hash_tensor",
    "cygrad.operators.histograms":
        "bincount histc histogram",
    "cygrad.operators.indexing":
        "select narrow narrow_copy _with_zeros_at _scatter_key",
    "cygrad.operators.least_squares":
        "pinverse _lstsq",
    "cygrad.operators.lookup":
        "_spread_along _gather_with_sparse_gradient gather index_select take_along_dim take nonzero argwhere nonzero_static",
    "cygrad.operators.losses":
        "_binary_cross_entropy",
    "cygrad.operators.masking":
        "where masked_fill masked_fill_ masked_select masked_scatter masked_scatter_",
    "cygrad.operators.matrix_functions":
        "matrix_exp matrix_power",
    "cygrad.operators.matrix_norms":
        "norm",
    "cygrad.operators.max_pooling":
        "_take_places _add_at_places _largest_of_windows",
    "cygrad.operators.memory":
        "untyped_storage storage const_data_ptr dim_order",
    "cygrad.operators.new_tensors":
        "new_empty new_empty_strided new_zeros new_ones new_full",
    "cygrad.operators.normalization":
        "_standardized",
    "cygrad.operators.norms":
        "dist renorm renorm_",
    "cygrad.operators.orthogonal":
        "qr geqrf orgqr ormqr",
    "cygrad.operators.patches":
        "_take_columns _add_columns",
    "cygrad.operators.products":
        "matmul mm bmm mv inner trace addmm addmm_ baddbmm baddbmm_ addmv addmv_ addr addr_ addbmm addbmm_ kron",
    "cygrad.operators.python_functions":
        "apply_ map_ map2_",
    "cygrad.operators.quantiles":
        "quantile nanquantile",
    "cygrad.operators.random_draws":
        "multinomial",
    "cygrad.operators.random_fills":
        "uniform_ normal_ log_normal_ exponential_ cauchy_ geometric_ bernoulli bernoulli_ random_",
    "cygrad.operators.rearranging":
        "repeat tile repeat_interleave flip fliplr flipud rot90 roll",
    "cygrad.operators.reductions":
        "_share_among max min aminmax argmax argmin count_nonzero sum nansum mean prod amax amin any all",
    "cygrad.operators.scans":
        "_cumsum cumsum cumsum_ logcumsumexp _cumprod_gradient cumprod cumprod_ cummax cummin diff",
    "cygrad.operators.scattering":
        "scatter scatter_ scatter_add scatter_add_ scatter_reduce scatter_reduce_ index_add index_add_ index_copy index_copy_ "
        "index_fill index_fill_ index_reduce index_reduce_ put put_ index_put index_put_",
    "cygrad.operators.shapes":
        "view _as_dtype reshape view_as reshape_as flatten unflatten ravel squeeze squeeze_ unsqueeze unsqueeze_ permute "
        "transpose transpose_ swapdims swapdims_ swapaxes swapaxes_ t t_ adjoint movedim moveaxis expand expand_as broadcast_to "
        "sum_to_size",
    "cygrad.operators.solving":
        "triangular_solve inverse cholesky_solve cholesky_inverse",
    "cygrad.operators.sorting":
        "sort argsort msort topk kthvalue median nanmedian unique unique_consecutive",
    "cygrad.operators.sparse_products":
        "_sparse_times _product_along _times_sparse",
    "cygrad.operators.sparse_solving":
        "_sparse_solve",
    "cygrad.operators.sparse_tensors":
        "to_sparse to_sparse_coo to_sparse_csr to_sparse_csc to_dense sparse_mask to_scipy indices values _indices _values _nnz "
        "crow_indices col_indices ccol_indices row_indices sparse_dim dense_dim coalesce is_coalesced sparse_resize_",
    "cygrad.operators.special_functions":
        "polygamma polygamma_ mvlgamma mvlgamma_",
    "cygrad.operators.spectra":
        "svd",
    "cygrad.operators.spectrograms":
        "stft istft",
    "cygrad.operators.splitting":
        "split split_with_sizes chunk unbind tensor_split hsplit vsplit dsplit unsafe_split unsafe_split_with_sizes unsafe_chunk",
    "cygrad.operators.statistics":
        "var std nanmean mode",
    "cygrad.operators.variants":
        "clamp clip clamp_ clip_ pow nan_to_num nan_to_num_ round round_ logit logit_ prelu positive _cube_root",
    "cygrad.operators.vectors":
        "dot outer ger vdot cross _vector_convolution",
    "cygrad.operators.windows":
        "unfold _sum_windows as_strided as_strided_ as_strided_scatter _gather_view _scatter_view _put_view",
}

SYNTAX: dict[str, str] = {
    "cygrad.operators.indexing":
        "__getitem__ __setitem__",
}

PROPERTIES: dict[str, str] = {
    "cygrad.operators.shapes":
        "T mT H mH",
}

RULES: dict[str, str] = {
    "cygrad.operators.banded_systems":
        "solved_by_bands",
    "cygrad.operators.bands":
        "banded",
    "cygrad.operators.bessel_functions":
        "special_bessel_j0 special_bessel_j1 special_bessel_y0 special_bessel_y1 special_modified_bessel_k0 "
        "special_modified_bessel_k1 special_scaled_modified_bessel_k0 special_scaled_modified_bessel_k1 special_jv special_yv "
        "special_iv special_ive special_kv special_airy_ai airy_ai_slope spherical_bessel special_spherical_bessel_j0",
    "cygrad.operators.class_losses":
        "at_classes to_classes softmax_loss_gradient softmax_loss",
    "cygrad.operators.conjugation":
        "view_as_real view_as_complex",
    "cygrad.operators.convolutions":
        "convolve spread_kernels sum_kernels",
    "cygrad.operators.copies":
        "clone convert alias enter copy fill zero",
    "cygrad.operators.determinants":
        "linalg_det linalg_slogdet",
    "cygrad.operators.diagonals":
        "tril triu diagonal diag_embed diagonal_scatter select_scatter slice_scatter",
    "cygrad.operators.distances":
        "pull euclidean_dist products_of_pairs pull_pairs pair_distances",
    "cygrad.operators.embeddings":
        "with_gradient_times rows_with_sparse_gradient",
    "cygrad.operators.exponentials":
        "logsumexp softmax log_softmax",
    "cygrad.operators.exponents":
        "frexp",
    "cygrad.operators.factorizations":
        "linalg_cholesky linalg_cholesky_ex cholesky rows_exchanged lu_factored linalg_lu_solve linalg_ldl_solve",
    "cygrad.operators.fourier":
        "fft_c2c fft_r2c fft_c2r",
    "cygrad.operators.gamma_functions":
        "igamma igammac igamma_slope special_zeta special_gamma special_rgamma special_gammasgn special_beta special_betaln "
        "special_betainc special_erfcinv",
    "cygrad.operators.grids":
        "read_at_points spread_from_points slopes_at_points",
    "cygrad.operators.indexing":
        "slice index select scatter_key",
    "cygrad.operators.joining":
        "cat stack",
    "cygrad.operators.least_squares":
        "linalg_pinv lstsq",
    "cygrad.operators.lookup":
        "spread_along gather_with_sparse_gradient gather index_select take",
    "cygrad.operators.losses":
        "binary_cross_entropy",
    "cygrad.operators.masking":
        "masked_fill masked_select masked_scatter",
    "cygrad.operators.matrix_equations":
        "linalg_sqrtm",
    "cygrad.operators.matrix_functions":
        "linalg_matrix_exp",
    "cygrad.operators.max_pooling":
        "take_places add_at_places largest_of_windows",
    "cygrad.operators.normalization":
        "standardized",
    "cygrad.operators.norms":
        "linalg_vector_norm",
    "cygrad.operators.orthogonal":
        "linalg_qr linalg_householder_product ormqr",
    "cygrad.operators.padding":
        "constant_pad_nd",
    "cygrad.operators.patches":
        "take_columns add_columns",
    "cygrad.operators.pending_messages":
        "start_message end_message",
    "cygrad.operators.polynomials":
        "gegenbauer laguerre special_chebyshev_polynomial_t special_chebyshev_polynomial_u special_chebyshev_polynomial_v "
        "special_chebyshev_polynomial_w special_shifted_chebyshev_polynomial_t special_shifted_chebyshev_polynomial_u "
        "special_shifted_chebyshev_polynomial_v special_shifted_chebyshev_polynomial_w special_hermite_polynomial_h "
        "special_hermite_polynomial_he special_laguerre_polynomial_l special_legendre_polynomial_p",
    "cygrad.operators.products":
        "matmul addmm baddbmm",
    "cygrad.operators.rearranging":
        "repeat flip roll",
    "cygrad.operators.reductions":
        "max min",
    "cygrad.operators.scans":
        "cumsum logcumsumexp cumprod cummax cummin",
    "cygrad.operators.scattering":
        "scatter scatter_add scatter_sum scatter_prod scatter_mean scatter_extremum index_add index_copy index_fill put index_put",
    "cygrad.operators.shapes":
        "view squeeze unsqueeze permute transpose t expand",
    "cygrad.operators.solving":
        "linalg_solve_triangular solved_by_factors inverted cholesky_solve cholesky_inverse",
    "cygrad.operators.sorting":
        "sort topk kthvalue median median_of_all nanmedian nanmedian_of_all",
    "cygrad.operators.sparse_products":
        "sparse_times product_along",
    "cygrad.operators.sparse_solving":
        "sparse_solve",
    "cygrad.operators.spectra":
        "linalg_eigh linalg_eig linalg_svd",
    "cygrad.operators.splitting":
        "split split_with_sizes unbind",
    "cygrad.operators.statistics":
        "var std var_mean std_mean",
    "cygrad.operators.transfers":
        "transfer taped_transfer",
    "cygrad.operators.variants":
        "cube_root",
    "cygrad.operators.vectors":
        "dot linalg_cross vector_convolution",
    "cygrad.operators.windows":
        "unfold sum_windows as_strided gather_view scatter_view put_view",
}

OTHERS: dict[str, str] = {
    "cygrad.array_api":
        "array_api",
    "cygrad.checkpoint":
        "checkpoint",
    "cygrad.config":
        "config show_config",
    "cygrad.cuda":
        "cuda",
    "cygrad.fft":
        "fft",
    "cygrad.func":
        "func vmap",
    "cygrad.linalg":
        "linalg",
    "cygrad.mpi":
        "mpi",
    "cygrad.nn":
        "nn",
    "cygrad.optimize":
        "optimize",
    "cygrad.overrides":
        "overrides DisableTorchFunction DisableTorchFunctionSubclass",
    "cygrad.printing":
        "printing set_printoptions",
    "cygrad.pytree":
        "pytree",
    "cygrad.random":
        "random Generator bernoulli default_generator get_rng_state initial_seed manual_seed normal rand rand_like randint "
        "randint_like randn randn_like randperm seed set_rng_state",
    "cygrad.serialization":
        "serialization load save",
    "cygrad.signal":
        "signal",
    "cygrad.sparse":
        "sparse",
    "cygrad.special":
        "special",
    "cygrad.testing":
        "testing",
    "cygrad.utils":
        "utils",
    "cygrad.autograd.anomaly_mode":
        "is_anomaly_check_nan_enabled is_anomaly_enabled set_anomaly_enabled",
    "cygrad.autograd.grad_mode":
        "enable_grad inference_mode is_inference_mode_enabled no_grad set_grad_enabled",
    "cygrad.compiling.compiled":
        "compile",
    "cygrad.data.limits":
        "can_cast finfo iinfo promote_types result_type",
    "cygrad.data.spaced":
        "empty_permuted logspace range scalar_tensor",
    "cygrad.operators._sparse.making":
        "sparse_compressed_tensor sparse_coo_tensor sparse_csc_tensor sparse_csr_tensor",
    "cygrad.torch_names.asking":
        "get_device is_complex is_distributed is_floating_point is_inference is_nonzero is_same_size is_signed is_storage "
        "is_tensor is_vulkan_available numel typename",
    "cygrad.torch_names.settings":
        "are_deterministic_algorithms_enabled get_default_device get_deterministic_debug_mode get_float32_matmul_precision "
        "get_num_interop_threads is_deterministic_algorithms_warn_only_enabled is_warn_always_enabled set_default_device "
        "set_deterministic_debug_mode set_float32_matmul_precision set_flush_denormal set_num_interop_threads set_warn_always "
        "use_deterministic_algorithms",
    "cygrad.torch_names.tensor_types":
        "set_default_tensor_type BoolTensor ByteTensor CharTensor ShortTensor IntTensor LongTensor UInt16Tensor UInt32Tensor "
        "UInt64Tensor HalfTensor BFloat16Tensor FloatTensor DoubleTensor ComplexFloatTensor ComplexDoubleTensor",
}
